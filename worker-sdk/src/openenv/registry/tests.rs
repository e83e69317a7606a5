use proptest::prelude::*;

use super::*;

const IDLE: Duration = Duration::from_secs(10);

/// A registry, and a clock that stands still.
struct Scene {
    registry: Registry<&'static str>,
    start: Instant,
}

impl Scene {
    fn new(limit: usize) -> Self {
        Self { registry: Registry::new(limit), start: Instant::now() }
    }

    fn at(&self, seconds: u64) -> Instant {
        self.start + Duration::from_secs(seconds)
    }

    fn opened(&mut self, id: &'static str, is_owned: bool) {
        self.registry.reserve(id.into(), is_owned, self.start).unwrap();
        self.registry.open(id, id, self.start).unwrap();
    }

    fn idle(&mut self, seconds: u64) -> Vec<&'static str> {
        let now = self.at(seconds);
        self.registry.end_idle(now, IDLE).into_iter().map(|(_, environment)| environment).collect()
    }
}

#[test]
fn a_place_is_taken_until_the_environment_is_closed() {
    let mut scene = Scene::new(2);
    scene.opened("a", false);
    scene.registry.reserve("b".into(), true, scene.start).unwrap();
    let full = Err(Full { active: 2, limit: 2 });
    assert_eq!(scene.registry.reserve("c".into(), true, scene.start), full, "while b is being made, too");
    assert_eq!(scene.registry.close("a"), Ok(Closed::Now("a")));
    assert_eq!(scene.registry.reserve("c".into(), true, scene.start), full, "while a is being closed");
    assert_eq!(scene.registry.begin_use("a", scene.start), Err(Absent::Unknown));
    scene.registry.forget("a");
    scene.registry.reserve("c".into(), true, scene.start).unwrap();
}

#[test]
fn a_session_is_there_once_its_environment_is() {
    let mut scene = Scene::new(2);
    scene.registry.reserve("a".into(), false, scene.start).unwrap();
    assert_eq!(scene.registry.begin_use("a", scene.start), Err(Absent::Starting));
    assert_eq!(scene.registry.attach("a"), Err(Absent::Starting));
    assert_eq!(scene.registry.close("a"), Err(Absent::Starting));
    scene.registry.open("a", "a", scene.start).unwrap();
    assert_eq!(scene.registry.begin_use("a", scene.start), Ok("a"));
    assert_eq!(scene.registry.begin_use("nope", scene.start), Err(Absent::Unknown));
    assert_eq!(scene.registry.close("nope"), Err(Absent::Unknown));
}

#[test]
fn an_environment_that_nobody_waits_for_is_given_back() {
    let mut scene = Scene::new(2);
    scene.registry.reserve("a".into(), false, scene.start).unwrap();
    assert_eq!(scene.registry.end("a"), None);
    assert_eq!(scene.registry.begin_use("a", scene.start), Err(Absent::Unknown));
    assert_eq!(scene.registry.open("a", "a", scene.start), Err("a"));
    assert_eq!(scene.registry.len(), 1, "its place is taken until it is closed");
    scene.registry.forget("a");
    assert_eq!(scene.registry.len(), 0);
}

#[test]
fn one_websocket_is_attached_at_a_time() {
    let mut scene = Scene::new(2);
    scene.opened("a", false);
    assert_eq!(scene.registry.attach("a"), Ok("a"));
    assert_eq!(scene.registry.attach("a"), Err(Absent::Attached));
    assert_eq!(scene.registry.detach("a", scene.start), None, "the session stays");
    assert_eq!(scene.registry.attach("a"), Ok("a"));
}

#[test]
fn a_session_that_is_closed_while_attached_ends_when_that_leaves() {
    let mut scene = Scene::new(2);
    scene.opened("a", false);
    scene.registry.attach("a").unwrap();
    assert_eq!(scene.registry.close("a"), Ok(Closed::Later));
    assert_eq!(scene.registry.close("a"), Ok(Closed::Later));
    assert_eq!(scene.registry.begin_use("a", scene.start), Ok("a"), "until then it is there");
    assert_eq!(scene.registry.detach("a", scene.start), Some("a"));
    assert_eq!(scene.registry.detach("a", scene.start), None, "once");
}

#[test]
fn a_websockets_session_ends_with_it_whoever_is_attached() {
    let mut scene = Scene::new(2);
    scene.opened("a", true);
    scene.registry.attach("a").unwrap();
    assert_eq!(scene.registry.end("a"), Some("a"));
    assert_eq!(scene.registry.detach("a", scene.start), None);
    assert_eq!(scene.registry.end("a"), None);
}

#[test]
fn idle_is_what_nobody_uses() {
    let mut scene = Scene::new(8);
    for id in ["idle", "attached", "in use", "used"] {
        scene.opened(id, false);
    }
    scene.opened("owned", true);
    scene.registry.attach("attached").unwrap();
    scene.registry.begin_use("in use", scene.start).unwrap();
    scene.registry.begin_use("used", scene.start).unwrap();
    scene.registry.end_use("used", scene.at(9));
    assert_eq!(scene.idle(9), [""; 0]);
    assert_eq!(scene.idle(10), ["idle"]);
    assert_eq!(scene.idle(10), [""; 0], "once");
    assert_eq!(scene.idle(19), ["used"]);
    assert_eq!(scene.idle(86_400), [""; 0], "whatever is in use");
    scene.registry.detach("attached", scene.at(86_400));
    scene.registry.end_use("in use", scene.at(86_401));
    assert_eq!(scene.idle(86_409), [""; 0]);
    assert_eq!(scene.idle(86_410), ["attached"]);
    assert_eq!(scene.idle(86_411), ["in use"]);
}

#[derive(Clone, Debug)]
enum Event {
    Reserve(bool),
    Open,
    Use,
    EndUse,
    Attach,
    Detach,
    Close,
    End,
    Idle,
    Forget,
}

fn events() -> impl Strategy<Value = Vec<(usize, Event)>> {
    let event = prop_oneof![
        any::<bool>().prop_map(Event::Reserve),
        Just(Event::Open),
        Just(Event::Use),
        Just(Event::EndUse),
        Just(Event::Attach),
        Just(Event::Detach),
        Just(Event::Close),
        Just(Event::End),
        Just(Event::Idle),
        Just(Event::Forget),
    ];
    prop::collection::vec((0..4_usize, event), 0..60)
}

proptest! {
    /// Whatever happens in whatever order: every environment that was taken in is given out once at most, never while the
    /// session can still be used, and there are never more than the limit.
    #[test]
    fn an_environment_is_given_out_once(events in events()) {
        const IDS: [&str; 4] = ["a", "b", "c", "d"];
        let start = Instant::now();
        let mut registry = Registry::<u32>::new(3);
        let (mut next, mut ended, mut taken_in) = (0, Vec::new(), Vec::new());
        for (which, event) in events {
            let id = IDS[which];
            match event {
                Event::Reserve(is_owned) => {
                    if !registry.sessions.contains_key(id) {
                        let before = registry.len();
                        prop_assert_eq!(registry.reserve(id.into(), is_owned, start).is_ok(), before < 3);
                    }
                }
                Event::Open => {
                    next += 1;
                    if registry.open(id, next, start).is_ok() {
                        taken_in.push(next);
                    }
                }
                Event::Use => drop(registry.begin_use(id, start)),
                Event::EndUse => registry.end_use(id, start),
                Event::Attach => drop(registry.attach(id)),
                Event::Detach => ended.extend(registry.detach(id, start)),
                Event::Close => if let Ok(Closed::Now(environment)) = registry.close(id) {
                    ended.push(environment);
                },
                Event::End => ended.extend(registry.end(id)),
                Event::Idle => {
                    let later = start + IDLE;
                    ended.extend(registry.end_idle(later, IDLE).into_iter().map(|(_, environment)| environment));
                }
                // Only what has ended is forgotten.
                Event::Forget => {
                    let has_ended = matches!(registry.sessions.get(id), Some(Entry { phase: Phase::Ending, .. }));
                    if has_ended { registry.forget(id) }
                }
            }
            prop_assert!(registry.len() <= 3);
            for id in IDS {
                if let Ok(environment) = registry.begin_use(id, start) {
                    registry.end_use(id, start);
                    prop_assert!(!ended.contains(&environment), "{} is used after its end", environment);
                }
            }
        }
        ended.extend(registry.end_every().into_iter().map(|(_, environment)| environment));
        ended.sort_unstable();
        prop_assert_eq!(ended, taken_in);
    }
}
