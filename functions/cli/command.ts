/** A command of the command line: its words, its arguments and options, and its action. */

import { parseDuration } from "../terminal/duration.ts";
import { CliError } from "../terminal/screen.ts";
import type { Output, Session } from "./session.ts";

/** The kinds of words that shell completion offers in an argument's place. */
type Completion = "sidecarset" | "set" | "pod" | "container" | "file" | "none";

interface ArgumentSpec {
  /** `<NAME>` is required, `[NAME]` may be left out, `[NAME...]` may be several */
  readonly name: string;
  readonly about: string;
  readonly completion?: Completion;
}

interface OptionSpec {
  /** as commander reads them: `-f, --filename <FILE>` */
  readonly flags: string;
  readonly about: string;
  /** may be given several times */
  readonly isList?: boolean;
  readonly choices?: readonly string[];
}

export interface Command {
  /** one word, or two: `set image` */
  readonly name: string;
  /** the heading of its group in the help */
  readonly group: string;
  /** half a sentence */
  readonly summary: string;
  readonly details?: string;
  readonly arguments?: readonly ArgumentSpec[];
  readonly options?: readonly OptionSpec[];
  /** the first is the default; "file": -o names the file to write; absent: -o is not taken */
  readonly outputs?: readonly Output[] | "file";
  /** whole lines, with their effect behind a # */
  readonly examples: readonly string[];
  /** exit codes beyond 0, 1 and 2 */
  readonly exits?: readonly string[];
  /** @returns the exit code; nothing: 0 */
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

  /** A required argument: commander has refused calls without it. */
  argument(index: number): string {
    return this.#arguments[index] ?? "";
  }

  /** by the option's long name */
  text(option: string): string | undefined {
    const value = this.#options[camelCase(option)];
    return typeof value === "string" ? value : undefined;
  }

  /** @throws CliError */
  required(option: string): string {
    const value = this.text(option);
    if (value) return value;
    throw new CliError(`--${option} is missing; \`--help\` lists the options`);
  }

  isSet(option: string): boolean {
    return this.#options[camelCase(option)] === true;
  }

  /** `--no-tls` was given, for `tls` */
  isUnset(option: string): boolean {
    return this.#options[camelCase(option)] === false;
  }

  list(option: string): readonly string[] {
    const value = this.#options[camelCase(option)];
    return Array.isArray(value) ? value : [];
  }

  /** undefined: not given. @throws CliError unless it is a whole number of at least `least` */
  number(option: string, least: number): number | undefined {
    const value = this.text(option);
    if (value === undefined) return undefined;
    if (/^\d{1,9}$/.test(value) && Number(value) >= least) return Number(value);
    throw new CliError(`--${option} ${value}: write a whole number from ${least} on`);
  }

  /** undefined: not given. @throws CliError unless it is a duration */
  durationMs(option: string): number | undefined {
    const value = this.text(option);
    return value === undefined ? undefined : parseDuration(option, value);
  }
}

function camelCase(option: string): string {
  return option.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
