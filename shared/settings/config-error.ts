/** An unusable setting; the message is one sentence with the variable, the fault and the allowed values. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}
