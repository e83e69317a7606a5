use super::*;

fn read(value: Value) -> Result<Request, RpcError> {
    Request::read(value.as_object().cloned().unwrap())
}

#[test]
fn ids_are_strings_integers_or_null() {
    for (id, is) in [
        (json!("a"), json!("a")),
        (json!(0), json!(0)),
        (json!(null), json!(null)),
        (json!(3.0), json!(3)),
        (json!(true), json!(1)),
    ] {
        assert_eq!(read(json!({"jsonrpc": "2.0", "method": "m", "id": id})).unwrap().id, is);
    }
    assert_eq!(read(json!({"jsonrpc": "2.0", "method": "m"})).unwrap().id, Value::Null);
    for id in [json!(1.5), json!([1]), json!({})] {
        let refused = read(json!({"jsonrpc": "2.0", "method": "m", "id": id})).unwrap_err();
        let words = "Invalid request: 2 validation errors for JsonRpcRequest\nid.str\n  Input should be a valid string ";
        assert!(refused.message.starts_with(words), "{}", refused.message);
    }
}

#[test]
fn what_is_no_request_is_told_in_pydantics_words() {
    let words = |value| read(value).unwrap_err().message;
    assert!(words(json!({})).starts_with(
        "Invalid request: 2 validation errors for JsonRpcRequest\njsonrpc\n  Field required [type=missing, input_value={}, input_type=dict]"
    ));
    let version = words(json!({"jsonrpc": "1.0", "method": "m"}));
    assert!(
        version.contains(
            "jsonrpc\n  Input should be '2.0' [type=literal_error, input_value='1.0', input_type=str]"
        ),
        "{version}"
    );
    let extra = words(json!({"jsonrpc": "2.0", "method": "m", "x": 1}));
    assert!(
        extra.contains(
            "x\n  Extra inputs are not permitted [type=extra_forbidden, input_value=1, input_type=int]"
        ),
        "{extra}"
    );
    for params in [json!([1]), json!(null)] {
        assert!(
            words(json!({"jsonrpc": "2.0", "method": "m", "params": params})).contains("[type=dict_type")
        );
    }
    assert_eq!(
        Request::parse("{").unwrap_err().message,
        "Parse error: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
    );
    assert_eq!(Request::parse("[]").unwrap_err().code, -32700);
}

#[test]
fn replies_have_an_id_and_errors_have_data() {
    assert_eq!(reply(&json!(null), Ok(json!(1))), json!({"jsonrpc": "2.0", "id": null, "result": 1}));
    let error = reply(&json!("a"), Err(RpcError::method_not_found("m")));
    assert_eq!(
        error,
        json!({"jsonrpc": "2.0", "id": "a", "error": {"code": -32601, "message": "Method not found: m", "data": null}})
    );
}
