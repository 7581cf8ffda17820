/** A setting that cannot be used; the message is one sentence that names the variable, what is wrong and what is allowed. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}
