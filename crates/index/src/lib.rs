//! API objects as inputs of the engine and of dispatch, and decisions as status.
