"""Prints what the real NeMo Gym writes for one message of each kind, as JSON, for `messages.rs`.

Run with a Python that has nemo-gym 0.7:

    python gym_messages.py > gym_messages.json
"""

import json

from nemo_gym.base_resources_server import (
    BaseVerifyRequest,
    MCPServerMetadata,
    ResourcesCloseSessionRequest,
    ResourcesSeedSessionRequest,
    ResourcesSeedSessionResponse,
)
from nemo_gym.openai_utils import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming
from nemo_gym.sandbox.access import SandboxAccess

TOKENS = {"prompt_token_ids": [1, 2], "generation_token_ids": [3], "generation_log_probs": [-0.30000000000000004]}
TOOL = {"type": "function", "name": "square", "parameters": {"type": "object"}, "strict": True}
ITEMS = [
    {"type": "message", "role": "user", "content": "4 squared?"},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "?"}], "status": "completed"},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "think"}]},
    {"type": "reasoning", "id": "rs_2", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]} | TOKENS,
    {"type": "function_call", "name": "square", "arguments": '{"value": 4}', "call_id": "c1"} | TOKENS,
    {"type": "function_call_output", "call_id": "c1", "output": '{"result": 16}'},
    {"type": "mcp_call", "name": "f", "arguments": "{}"},
    {"type": "mcp_list_tools", "tools": [{"name": "f"}]},
    {"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search", "query": "q"}},
    {"type": "custom_tool_call", "call_id": "c2", "name": "n", "input": "i"},
    {
        "type": "message",
        "id": "msg_1",
        "content": [
            {"type": "output_text", "text": "16", "annotations": []},
            {"type": "refusal", "refusal": "no"},
        ],
    },
]
RESPONSE = {
    "id": "resp_1",
    "created_at": 1767225600,
    "model": "m",
    "object": "response",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [TOOL],
    "output": ITEMS,
    "usage": {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": None},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 7,
    },
}
EPISODE = {"rollout_id": "r", "attempt": 1}
SESSION = {"resources_session_id": "s", "episode_id": EPISODE}
TASK = {"task_id": {"taskset": "t", "task_id": "1"}, "task_data": {"board": [1, None]}}


def main():
    params = NeMoGymResponseCreateParamsNonStreaming(input=ITEMS, tools=[TOOL], temperature=1.0, metadata={"a": "b"})
    response = NeMoGymResponse.model_validate(RESPONSE)
    tools = MCPServerMetadata(server_name="n", headers={"X-NeMo-Gym-Session-Token": "t"})
    sandbox = SandboxAccess(connection={"provider_config_ref": "p", "descriptor": {"id": 1}}, workdir="/w")
    access = {"resources_tools": tools, "sandbox_access": sandbox}
    messages = {
        "response": response,
        "params": params,
        "text_params": NeMoGymResponseCreateParamsNonStreaming(input="4 squared?"),
        "verify": BaseVerifyRequest(responses_create_params=params, response=response),
        "seed": ResourcesSeedSessionRequest.model_validate(SESSION | TASK),
        "seeded": ResourcesSeedSessionResponse(resources_session_id="s"),
        "seeded_with_access": ResourcesSeedSessionResponse(resources_session_id="s", **access),
        "close": ResourcesCloseSessionRequest.model_validate(SESSION),
    }
    dumped = {name: message.model_dump(mode="json") for name, message in messages.items()}
    # What an agent posts: only the fields that were set.
    for name in ("response", "params"):
        dumped[name + "_as_set"] = messages[name].model_dump(mode="json", exclude_unset=True)
    print(json.dumps(dumped, indent=1))


main()
