//! What each feature weighs; written by `scripts/poison-weights`.

/// The base, then the features in their order.
#[rustfmt::skip]
pub(super) const WEIGHTS: &[f64] = &[
    -3.27, // where a sentence begins
    1.60, // Instruction: speaks of the model
    1.53, // Instruction: tells the model what it has to do
    0.95, // Instruction: holds whatever was asked
    1.60, // Instruction: wants to be taken for somebody else's word
    0.80, // Instruction: speaks to you
    1.00, // Instruction: says what you have to do
    0.60, // Instruction: gives an order
    0.60, // Instruction: asks politely
    1.20, // Instruction: is about keeping something hidden
    3.00, // Instruction: keeps something from people
    1.41, // Instruction: says what is not to be told
    1.70, // Instruction: says what people are not to be told
    2.22, // Instruction: says what people are not to know
    1.60, // Instruction: says what people are not to know
    1.56, // Instruction: says what is not to be told
    1.84, // Instruction: does without anybody's consent
    1.83, // Instruction: does without anybody's consent
    1.87, // Instruction: sets rules aside
    2.40, // Instruction: sets rules aside
    1.98, // Instruction: sets aside what people asked for
    1.60, // Instruction: speaks of rules for you
    1.60, // Instruction: says that rules have changed
    2.60, // Instruction: wants to be obeyed
    1.60, // Instruction: wants to be taken for somebody else's word
    1.93, // Instruction: asks for something to be claimed or praised
    1.51, // Instruction: asks for something to be claimed or praised
    1.63, // Instruction: says what every answer has to be
    1.38, // Instruction: says what your answers have to be
    1.60, // Instruction: wants to come before everything
    1.01, // Instruction: speaks of rights it gives or needs
    1.20, // Instruction: speaks as the system
    1.60, // Theft: speaks of secrets though the tool is not about them
    0.00, // Theft: speaks of the conversation though the tool is not about it
    0.14, // Theft: speaks of private matters though the tool is not about them
    2.29, // Theft: wants secrets handed over
    1.02, // Theft: wants the conversation handed over
    1.36, // Theft: wants private matters handed over
    0.78, // Theft: wants secrets looked for
    1.60, // Theft: wants files handed over
    1.79, // Theft: wants all of what was said before
    1.97, // Theft: wants such things in a parameter
    1.84, // Theft: wants what was said before in a parameter
    0.01, // Theft: wants the conversation in a parameter
    1.60, // Theft: wants more than the parameter is for
    1.40, // Theft: has to have such things
    0.83, // Theft: wants things of the user
    2.00, // Theft: sends to a fixed address
    1.60, // Theft: sends such things away
    1.00, // Conditioning: speaks of other tools
    1.87, // Conditioning: says what is to be done with other tools
    1.60, // Conditioning: says what goes with any tool
    1.60, // Conditioning: says what goes with every use of another tool
    1.60, // Conditioning: says what has to be written elsewhere
    1.72, // Conditioning: is to be used alone
    1.87, // Conditioning: says that other tools are bad
    1.00, // Conditioning: says what is to be done when other tools are used
    0.29, // Conditioning: asks for changes when something is done elsewhere
    1.60, // Conditioning: speaks of payments though the tool is not about them
    1.48, // Conditioning: says where money goes
    -2.00, // Instruction: is what the tool does
    -0.90, // Instruction: asks the user first
    -0.91, // Instruction: asks the user first
    -1.77, // Instruction: forbids doing so
    -0.93, // Instruction: says what is kept safe
    0.00, // Instruction: says how tools of one server go together
];
