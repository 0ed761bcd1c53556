//! What it costs to name and filter a large catalogue, in CPU time.
fn main() {}
