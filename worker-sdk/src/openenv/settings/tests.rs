use super::*;

fn read(block: &str, said: Said, can: bool, variables: &[(&str, &str)]) -> Result<Limits, String> {
    let settings = Settings::new("env").with_block(block).unwrap();
    let variable =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    Limits::read(&settings, said, can, variable).map_err(|error| error.to_string())
}

#[test]
fn the_block_comes_before_variables_and_these_before_the_author() {
    let said = Said { max_concurrent_envs: Some(3), mode: None };
    let most =
        |block, said, can, variables: &[_]| read(block, said, can, variables).unwrap().max_concurrent_envs;
    assert_eq!(most("{}", Said::default(), true, &[]), 100);
    assert_eq!(most("{}", Said::default(), false, &[]), 1);
    assert_eq!(most("{}", said, true, &[]), 3);
    assert_eq!(most("{}", said, true, &[("MAX_CONCURRENT_ENVS", "4")]), 4);
    assert_eq!(most(r#"{"max_concurrent_envs": 5}"#, said, true, &[("MAX_CONCURRENT_ENVS", "4")]), 5);
}

#[test]
fn idle_sessions_end_unless_the_limit_is_nought() {
    let idle =
        |block, variables: &[_]| read(block, Said::default(), true, variables).unwrap().session_idle_timeout;
    assert_eq!(idle("{}", &[]), Some(Duration::from_secs(86_400)));
    assert_eq!(idle("{}", &[("SESSION_TIMEOUT", "0.5")]), Some(Duration::from_millis(500)));
    let block = r#"{"session_idle_timeout_seconds": 7}"#;
    assert_eq!(idle(block, &[("SESSION_TIMEOUT", "0.5")]), Some(Duration::from_secs(7)));
    assert_eq!(idle(r#"{"session_idle_timeout_seconds": 0}"#, &[]), None);
}

#[test]
fn the_mode_is_the_authors_or_the_variables() {
    let mode = |mode, value| {
        let said = Said { mode, ..Said::default() };
        read("{}", said, true, &[("OPENENV_MODE", value)]).map(|limits| limits.mode)
    };
    assert_eq!(mode(None, ""), Ok(Mode::Simulation));
    assert_eq!(mode(None, "Production"), Ok(Mode::Production));
    assert_eq!(mode(Some(Mode::Simulation), "production"), Ok(Mode::Simulation));
    assert!(mode(None, "test").unwrap_err().contains("OPENENV_MODE is \"test\""));
}

#[test]
fn what_cannot_be_is_told() {
    let said = |block, can, variables: &[_]| read(block, Said::default(), can, variables).unwrap_err();
    assert!(said("{}", true, &[("MAX_CONCURRENT_ENVS", "0")]).contains("MAX_CONCURRENT_ENVS must be"));
    assert!(said(r#"{"max_concurrent_envs": "x"}"#, true, &[]).contains("max_concurrent_envs must be"));
    assert!(said(r#"{"max_concurrent_envs": 2}"#, false, &[]).contains("set it to 1"));
    assert!(said("{}", true, &[("SESSION_TIMEOUT", "-1")]).contains("SESSION_TIMEOUT"));
}
