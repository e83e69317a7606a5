//! An environment's tools, whatever their types.

use std::collections::BTreeMap;
use std::fmt;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use schemars::Schema;
use serde_json::{Map, Value, json};

use super::{Arguments, ConcurrentTool, Message, Tool, ToolOutput};
use crate::errors::{Failure, Invalid};
use crate::schema::pydantic;

/// What came of running a tool.
pub(super) type Ran = Result<ToolOutput, Stopped>;

/// Why a tool has no output.
pub(super) enum Stopped {
    /// Its arguments do not fit: it did not run.
    Invalid(Invalid),
    /// It failed.
    Failed(Failure),
}

type Alone<E> = Box<dyn for<'e> Fn(&'e mut E, Value) -> BoxFuture<'e, Ran> + Send + Sync>;
type Beside<E> = Box<dyn for<'e> Fn(&'e E, Value) -> BoxFuture<'e, Ran> + Send + Sync>;

/// How a tool runs.
pub(super) enum Run<E> {
    /// Nothing else of its session runs.
    Alone(Alone<E>),
    /// Others of this kind may.
    Beside(Beside<E>),
}

/// Who is told of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    /// Every session.
    All,
    /// Those whose task has it.
    OfTask,
    /// None: the model's last message is its argument.
    Terminal,
}

/// One tool.
pub(super) struct ErasedTool<E> {
    pub(super) run: Run<E>,
    description: String,
    schema: Option<Map<String, Value>>,
    listing: Listing,
}

/// Tools by name, in the order in which the Python server lists them.
pub(super) struct Tools<E>(BTreeMap<String, ErasedTool<E>>);

impl<E> Run<E> {
    pub(super) fn alone<M: Arguments>(tool: impl for<'e> Tool<'e, E, M>) -> Self {
        Self::Alone(Box::new(move |environment, input| match M::read(input) {
            Ok(arguments) => Box::pin(tool.call(environment, arguments).map(ran)),
            Err(invalid) => Box::pin(ready(Err(Stopped::Invalid(invalid)))),
        }))
    }

    pub(super) fn beside<M: Arguments>(tool: impl for<'e> ConcurrentTool<'e, E, M>) -> Self {
        Self::Beside(Box::new(move |environment, input| match M::read(input) {
            Ok(arguments) => Box::pin(tool.call(environment, arguments).map(ran)),
            Err(invalid) => Box::pin(ready(Err(Stopped::Invalid(invalid)))),
        }))
    }
}

fn ran(result: crate::Result<ToolOutput>) -> Ran {
    result.map_err(Stopped::Failed)
}

impl<E> Tools<E> {
    pub(super) fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds one.
    ///
    /// # Errors
    /// Why it cannot be.
    pub(super) fn add<M: Arguments>(
        &mut self,
        name: &str,
        description: &str,
        listing: Listing,
        run: Run<E>,
    ) -> Result<(), String> {
        let schema = M::schema().map(|schema: Schema| pydantic(schema));
        if listing == Listing::Terminal {
            if let Some(other) = self.terminal() {
                return Err(format!("two terminal tools: {other} and {name}; there may be one"));
            }
            let fields = schema.as_ref().map_or(0, |schema| fields(schema).count());
            if schema.is_some() && fields != 1 {
                return Err(format!(
                    "the terminal tool {name} has {fields} arguments: it may have one, the model's message, or take \
                     nothing"
                ));
            }
        }
        if name.is_empty() {
            return Err("a tool without a name".to_owned());
        }
        let tool = ErasedTool { run, description: description.to_owned(), schema, listing };
        match self.0.insert(name.to_owned(), tool) {
            None => Ok(()),
            Some(_) => Err(format!("two tools of the name {name}")),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&ErasedTool<E>> {
        self.0.get(name)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn terminal(&self) -> Option<&str> {
        self.0.iter().find(|(_, tool)| tool.listing == Listing::Terminal).map(|(name, _)| name.as_str())
    }

    /// What clients are told, of a session whose task has these tools beside.
    pub(super) fn listed(&self, of_task: &[String]) -> Value {
        let all = self.0.iter().filter(|(_, tool)| tool.listing == Listing::All);
        let of_task = of_task.iter().filter_map(|name| self.0.get_key_value(name));
        let of_task = of_task.filter(|(_, tool)| tool.listing == Listing::OfTask);
        let spec = |(name, tool): (&String, &ErasedTool<E>)| json!({"name": name, "description": tool.description, "input_schema": tool.schema});
        let terminal = self.terminal().and_then(|name| self.0.get_key_value(name)).map(|(name, tool)| {
            let arg = tool.schema.as_ref().and_then(|schema| fields(schema).next());
            json!({"name": name, "arg": arg, "description": tool.description})
        });
        json!({
            "tools": all.chain(of_task).map(spec).collect::<Vec<_>>(),
            "terminal_tool": terminal,
            "supports_score_group": false,
            "message_block_types": Message::BLOCK_TYPES,
        })
    }
}

fn fields(schema: &Map<String, Value>) -> impl Iterator<Item = &String> {
    schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys)
}

impl<E> fmt::Debug for Tools<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
