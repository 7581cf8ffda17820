/** Something the caller of a command can fix: its message is the one sentence they get to read, without a stack trace. */
export class CliError extends Error {
  override readonly name = "CliError";
}
