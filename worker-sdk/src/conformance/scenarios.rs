//! What environment servers do to a session, each with one of its own.

use uuid::Uuid;

use super::{
    Options, Report, Seed,
    client::Client,
    scene::{Run, Scene, With},
    want::Want,
};

pub(super) async fn run(url: &str, seed: &Seed, options: &Options) -> Report {
    let mut run = Run {
        client: Client::new(url, options),
        options,
        report: Report::new(url, options.keeps_state, options.strict),
        stopped: None,
    };
    let nonce = Uuid::new_v4().simple().to_string();
    let session = |n| seed.session(&nonce[..8], n);
    life(Scene::new(&mut run, "a session's life", session(1))).await;
    if options.verify_body.is_some() {
        verified(Scene::new(&mut run, "a verify", session(2))).await;
    }
    other_seed(Scene::new(&mut run, "another episode's seed", session(3))).await;
    other_close(Scene::new(&mut run, "another episode's close", session(4))).await;
    never_seeded(Scene::new(&mut run, "a close that overtakes its seed", session(5))).await;
    lost_reply(Scene::new(&mut run, "a seed whose reply is lost", session(6))).await;
    run.report
}

/// Seed and close, both twice, and what comes too late.
async fn life(mut scene: Scene<'_, '_>) {
    let episode = scene.session.episode();
    let observation = scene.begin().await;
    scene.holds("state after the seed").await;
    let again = if scene.keeps_state() { Want::SeededAgain(observation) } else { Want::Seeded };
    scene.seed("repeated seed", &episode, again).await;
    scene.holds("state after the repeated seed").await;
    scene.close("close", &episode, With::Cookie, Want::Closed).await;
    scene.holds_nothing("state after the close").await;
    scene.close("repeated close", &episode, With::Cookie, Want::Closed).await;
    let lost = if scene.keeps_state() { Want::Masked } else { Want::Verdict { keeps_state: false } };
    scene.verify("verify after the close", lost).await;
    late_seed(scene).await;
}

/// The cookie of a repeated seed leads to the session, and a close follows the verify.
async fn verified(mut scene: Scene<'_, '_>) {
    let episode = scene.session.episode();
    scene.begin().await;
    scene.seed("repeated seed", &episode, Want::Seeded).await;
    scene.verify("verify", Want::Verdict { keeps_state: scene.keeps_state() }).await;
    scene.close("close after the verify", &episode, With::Cookie, Want::Closed).await;
    scene.holds_nothing("state after the close").await;
    scene.end().await;
}

/// An ID belongs to the episode that it was seeded for.
async fn other_seed(mut scene: Scene<'_, '_>) {
    let (episode, rollout, attempt) =
        (scene.session.episode(), scene.session.other_rollout(), scene.session.other_attempt());
    scene.begin().await;
    scene.holds("state after the seed").await;
    scene.seed("conflicting seed", &rollout, scene.conflict()).await;
    scene.seed("conflicting seed, another attempt", &attempt, scene.conflict()).await;
    scene.holds("state after the conflicting seeds").await;
    scene.close("close", &episode, With::Cookie, Want::Closed).await;
    scene.end().await;
}

/// Another episode does not close it.
async fn other_close(mut scene: Scene<'_, '_>) {
    let (episode, rollout, attempt) =
        (scene.session.episode(), scene.session.other_rollout(), scene.session.other_attempt());
    scene.begin().await;
    scene.holds("state after the seed").await;
    scene.close("close naming another episode", &rollout, With::Cookie, scene.conflict()).await;
    scene.close("close naming another attempt", &attempt, With::Cookie, scene.conflict()).await;
    scene.holds("state after the wrong closes").await;
    scene.close("close", &episode, With::Cookie, Want::Closed).await;
    scene.end().await;
}

/// A close of a session that nobody seeded succeeds, and keeps a delayed seed from making it.
async fn never_seeded(mut scene: Scene<'_, '_>) {
    let episode = scene.session.episode();
    scene.close("close of a never-seeded session", &episode, With::NoCookie, Want::Closed).await;
    late_seed(scene).await;
}

/// A close without a cookie, by the ID in its body alone.
async fn lost_reply(mut scene: Scene<'_, '_>) {
    let episode = scene.session.episode();
    scene.begin().await;
    scene.lose_reply();
    scene.holds("state after the seed").await;
    scene.close("close without a cookie", &episode, With::NoCookie, Want::Closed).await;
    scene.holds_nothing("state after the close").await;
    late_seed(scene).await;
}

/// The end of a scenario: a seed after the close.
async fn late_seed(mut scene: Scene<'_, '_>) {
    let episode = scene.session.episode();
    scene.seed("seed after the close", &episode, scene.conflict()).await;
    if scene.keeps_state() {
        scene.holds_nothing("state after the late seed").await;
    }
    scene.end().await;
}
