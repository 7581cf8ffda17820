/** A command of the command line: its words, its arguments and options, and its action. */

import { parseDuration } from "../terminal/duration.ts";
import { CliError } from "../terminal/screen.ts";
import type { Output, Session } from "./session.ts";

/** The kinds of words that shell completion offers for an argument. */
type Completion = "sidecarset" | "set" | "pod" | "container" | "file" | "none";

interface ArgumentSpec {
  /** `<NAME>` is required, `[NAME]` may be left out, `[NAME...]` may be several */
  readonly name: string;
  readonly about: string;
  readonly completion?: Completion;
}

interface OptionSpec {
  /** an option as commander reads it: `-f, --filename <FILE>` */
  readonly flags: string;
  readonly about: string;
  /** the option may be given several times */
  readonly isList?: boolean;
  readonly choices?: readonly string[];
}

export interface Command {
  /** the command's name, one word or two: `set image` */
  readonly name: string;
  /** the heading of its group in the help */
  readonly group: string;
  /** half a sentence that says what the command does */
  readonly summary: string;
  readonly details?: string;
  readonly arguments?: readonly ArgumentSpec[];
  readonly options?: readonly OptionSpec[];
  /** formats of -o, the default first; "file": -o names the file to write; absent: the command has no -o */
  readonly outputs?: readonly Output[] | "file";
  /** whole lines, with their effect behind a # */
  readonly examples: readonly string[];
  /** descriptions of exit codes beyond 0, 1 and 2 */
  readonly exits?: readonly string[];
  /** @returns the exit code; undefined means 0 */
  readonly run: (input: Input, session: Session) => Promise<number | undefined>;
}

/** Arguments and options that a command was called with. */
export class Input {
  readonly #arguments: readonly string[];
  readonly #options: Readonly<Record<string, unknown>>;

  constructor(given: readonly string[], options: Readonly<Record<string, unknown>>) {
    this.#arguments = given;
    this.#options = options;
  }

  get arguments(): readonly string[] {
    return this.#arguments;
  }

  /** A required argument. Commander refuses a call without it. */
  argument(index: number): string {
    return this.#arguments[index] ?? "";
  }

  /** The value of the option with this long name. */
  text(option: string): string | undefined {
    const value = this.#options[camelCase(option)];
    return typeof value === "string" ? value : undefined;
  }

  /** The value of a required option. @throws CliError */
  required(option: string): string {
    const value = this.text(option);
    if (value) return value;
    throw new CliError(`--${option} is missing; \`--help\` lists the options`);
  }

  isSet(option: string): boolean {
    return this.#options[camelCase(option)] === true;
  }

  /** True if `--no-tls` was given, for the option `tls`. */
  isUnset(option: string): boolean {
    return this.#options[camelCase(option)] === false;
  }

  list(option: string): readonly string[] {
    const value = this.#options[camelCase(option)];
    return Array.isArray(value) ? value : [];
  }

  /** The option's number; undefined: not given. @throws CliError unless it is a whole number of at least `least` */
  number(option: string, least: number): number | undefined {
    const value = this.text(option);
    if (value === undefined) return undefined;
    if (/^\d{1,9}$/.test(value) && Number(value) >= least) return Number(value);
    throw new CliError(`--${option} ${value}: write a whole number from ${least} on`);
  }

  /** The option's duration; undefined: it was not given. @throws CliError unless it is a duration */
  durationMs(option: string): number | undefined {
    const value = this.text(option);
    return value === undefined ? undefined : parseDuration(option, value);
  }
}

function camelCase(option: string): string {
  return option.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
