"""blackjack, the Gymnasium protocol. The cards come from DECK, one after another, over and over, for all sessions."""

from .step import (
    EPISODE,
    PARAMS,
    PLUMBING,
    call,
    episode_seed,
    get,
    message,
    output,
    post,
    response,
    scenario,
    session,
    step,
)
from .verify import ROLLOUTS

# Dealt as: player, player, dealer, dealer; then what is hit; then what the dealer takes below 17.
DECK = [
    *["10", "7", "9", "8"],  # stand on 17 against 17: a draw
    *["5", "6", "K", "6", "9", "Q"],  # hit to 20, stand, the dealer busts: a win
    *["10", "6", "A", "9", "K"],  # hit, bust
    *["J", "7", "A", "K"],  # stand on 17 against 21: a loss
    *["A", "A", "2", "3", "A", "8", "5", "6", "4"],  # aces: 12, 13, 21, then the dealer takes 5, 6 and 4: 20
]


def act(name, *items, **more):
    return post(name, "/step", {"responses_create_params": PARAMS, "response": response(*items)} | more)


def say(name, text, **more):
    return act(name, message(text), **more)


def reset(name="reset", **more):
    return post(name, "/reset", {"responses_create_params": PARAMS} | more)


HIT, STAND = "<action>hit</action>", "<action>stand</action>"

SCENARIOS = [
    scenario("a draw", reset(), say("stand", STAND)),
    scenario("a win", reset(), say("hit", "I hit. " + HIT), say("stand", STAND)),
    scenario("a bust", reset(), say("hit", HIT)),
    scenario("a loss", reset(), say("stand", STAND)),
    scenario("aces", reset(), say("hit", HIT), say("hit again", HIT), say("stand", STAND)),
    scenario(
        "how an action is read",
        reset("reset for spaces and case"),
        say("spaces and case", "<ACTION>\n Stand </Action>"),
        reset("reset for the first of two"),
        say("the first of two", HIT + STAND),
        reset("reset for a bust"),
        say("bust", HIT),
        reset("reset for no action"),
        say("no action stands", "let me think"),
        reset("reset for an empty output"),
        act("an empty output"),
    ),
    scenario(
        "items that are no text",
        reset("reset for calls"),
        act("function call", call("hit"), call("stand", "call_2")),
        reset("reset for texts among others"),
        act("hit after a function call", call("x"), output("y"), message(HIT)),
        reset("reset for a split"),
        act("split over two messages", message("<action>st"), message("and</action>")),
        reset("reset for a refusal"),
        act("refusal", message("") | {"content": [{"type": "refusal", "refusal": STAND}]}),
    ),
    scenario(
        "metadata",
        reset("metadata", seed=7, task={"a": [1]}, verifier_metadata=None),
        say("metadata in a step", STAND, seed=7, _ng_step_request_id="step-1"),
    ),
    scenario(
        "reset again",
        reset("reset"),
        reset("reset in the same session"),
        say("stand", STAND),
    ),
    scenario(
        "cookies",
        reset("without a cookie"),
        get("health keeps the session", "/healthz"),
        say("stand", STAND),
        post(
            "given session",
            "/reset",
            {"responses_create_params": PARAMS},
            cookie="{{name}}={{signed}}",
            signed=session("fixed-session"),
        ),
        post("forged cookie on a reset", "/reset", {"responses_create_params": PARAMS}, cookie="{{name}}=rubbish"),
        post("rollout prefix", "/ng-rollout/r-1/reset", {"responses_create_params": PARAMS}),
        post(
            "rollout prefix on a step",
            "/ng-rollout/r-1/step",
            {"responses_create_params": PARAMS, "response": response(message(STAND))},
        ),
    ),
    scenario(
        "bad resets",
        post("no body", "/reset"),
        post("empty object", "/reset", {}),
        post("malformed", "/reset", body="{"),
        post("array", "/reset", []),
        post("null parameters", "/reset", {"responses_create_params": None}),
        post("parameters without input", "/reset", {"responses_create_params": {}}),
        get("GET", "/reset"),
        post("with a slash", "/reset/", {"responses_create_params": PARAMS}),
    ),
    scenario(
        "bad steps",
        reset(),
        post("no body", "/step"),
        post("empty object", "/step", {}),
        post("malformed", "/step", body="{"),
        post("no response", "/step", {"responses_create_params": PARAMS}),
        post("null response", "/step", {"responses_create_params": PARAMS, "response": None}),
        post("empty response", "/step", {"responses_create_params": PARAMS, "response": {}}),
        post("action as a string", "/step", {"responses_create_params": PARAMS, "response": "hit"}),
        post("no parameters", "/step", {"response": response(message(HIT))}),
        act("message without content", {"type": "message", "id": "m", "role": "assistant"}),
        get("GET", "/step"),
        say("the hand is as it was", STAND),
    ),
    scenario(
        "routes of the other protocol",
        post("seed_session", "/seed_session", {}),
        post("episode seed", "/seed_session", episode_seed("resources-session-1")),
        post("verify", "/verify", {"responses_create_params": PARAMS, "response": response()}),
        post("close_session", "/close_session", {"resources_session_id": "r", "episode_id": EPISODE}),
        post("close", "/close", {}),
        get("GET of close", "/close"),
        step("HEAD of reset", "HEAD", "/reset"),
        step("OPTIONS of reset", "OPTIONS", "/reset"),
        post("mcp", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        post("aggregate metrics", "/aggregate_metrics", {"verify_responses": ROLLOUTS}),
        post("aggregate metrics of nothing", "/aggregate_metrics", {"verify_responses": []}),
    ),
    *PLUMBING,
    # With a fresh deck each, for a server that takes or refuses what this one does not draws other cards.
    scenario("an easy message in the output", reset(), act("hit", {"role": "assistant", "content": HIT}), fresh=True),
    scenario(
        "an unknown item in the output",
        reset(),
        act("unknown item", {"type": "made_up", "a": 1}),
        act("stand", message(STAND)),
        fresh=True,
    ),
    scenario(
        "a reset with an unknown parameter",
        post("reset", "/reset", {"responses_create_params": PARAMS | {"made_up": 1}}),
        fresh=True,
    ),
    scenario(
        "the same step again",
        reset(),
        say("step", STAND, _ng_step_request_id="step-1"),
        say("with the same ID", STAND, _ng_step_request_id="step-1"),
        fresh=True,
    ),
    scenario("hit without a reset", say("hit", HIT), say("hit again", HIT), fresh=True),
    scenario("stand without a reset", say("stand", STAND), fresh=True),
    scenario(
        "step after the end",
        reset(),
        say("stand", STAND),
        say("stand again", STAND),
        say("hit", HIT),
        fresh=True,
    ),
]
