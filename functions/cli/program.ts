/** Builds the command line from the commands: parsing, help and errors. */
import { Argument, Command as Commander, CommanderError, Option } from "commander";
import { counted } from "../../shared/go/counted.ts";
import { nearest } from "../../shared/go/unseen.ts";
import { isKubeError } from "../../shared/kube/error.ts";
import { alert } from "../terminal/markdown.ts";
import { CliError, createScreen, type Screen, type Stream } from "../terminal/screen.ts";
import { wrap } from "../terminal/table.ts";
import { type Command, Input } from "./command.ts";
import { type GlobalOptions, Session } from "./session.ts";

export interface ProgramOptions {
  /** the program's name as called: `sidecarset`, or `kubectl sidecarset` */
  readonly name: string;
  readonly version: string;
  readonly stdout: Stream;
  readonly stderr: Stream;
  /** true if NO_COLOR is not set */
  readonly mayColor: boolean;
  /** the only generation that may be changed; absent: the present one */
  readonly generation?: number | undefined;
}

const FOOTER = [
  "Without --kubeconfig: KUBECONFIG, EKS_CLUSTER or CLUSTER_TOKEN, else the pod's service account, else ~/.kube/config.",
  "Exit codes: 0 done, 1 failed, 2 called in a wrong way; commands that answer yes or no say which others they have.",
];
/** The least width of a column of help. */
const NARROWEST_COLUMN = 10;
/** The width of help without a terminal. */
const HELP_WIDTH = 80;

/** @returns the exit code */
export async function runProgram(
  commands: readonly Command[],
  args: readonly string[],
  options: ProgramOptions,
): Promise<number> {
  const { stdout, stderr, mayColor } = options;
  const isPlain = args.includes("--no-color") || args.includes("--json");
  const screen = recorded(createScreen({ out: stdout, err: stderr, mayColor: mayColor && !isPlain }));
  const code = await codeOf(commands, args, options, screen);
  // A program that asked for JSON also gets errors as JSON.
  const [, , asked] = ASKED_OUTPUT.exec(args.join("\0")) ?? [];
  if (code !== 0 && !screen.hasPrinted() && asked !== undefined)
    screen.text(
      asked === "json"
        ? `${JSON.stringify({ error: { exitCode: code, message: screen.warnings.join("; ") } })}\n`
        : `${alert("CAUTION", screen.warnings)}\n`,
    );
  return code;
}

/** `-o json`, `-ojson` or `--output=json`, or the same with markdown, among arguments that are joined by NUL. */
const ASKED_OUTPUT = /(?:^|\0)(-o|--output)[\0=]?(json|markdown)(?:\0|$)/;

interface RecordedScreen extends Screen {
  readonly hasPrinted: () => boolean;
}

/** Records the screen's output. */
function recorded(screen: Screen): RecordedScreen {
  let hasPrinted = false;
  return {
    ...screen,
    hasPrinted: () => hasPrinted,
    line: (...parts) => {
      hasPrinted = true;
      screen.line(...parts);
    },
    text: (text) => {
      hasPrinted = true;
      screen.text(text);
    },
  };
}

async function codeOf(
  commands: readonly Command[],
  args: readonly string[],
  options: ProgramOptions,
  screen: Screen,
): Promise<number> {
  let code = 0;
  const program = programOf(commands, options, async (command, input, globals) => {
    // k9s passes its kubeconfig option even if that is empty.
    const given = { ...globals, kubeconfig: globals.kubeconfig || undefined, generation: options.generation };
    code = (await command.run(input, new Session(screen, given, command.outputs))) ?? 0;
  });
  try {
    await program.parseAsync([...args], { from: "user" });
    return code;
  } catch (error) {
    return failureOf(error, screen);
  }
}

type Run = (command: Command, input: Input, globals: GlobalOptions) => Promise<void>;

function programOf(commands: readonly Command[], options: ProgramOptions, run: Run): Commander {
  const { stdout } = options;
  const helpWidth = () => (stdout.isTTY ? (stdout.columns ?? HELP_WIDTH) : HELP_WIDTH);
  const program: Commander = withGlobals(new Commander(options.name))
    .description("SidecarSets: what they will do, what they did and why, and how to go on or back.")
    .usage("COMMAND [options]")
    .version(options.version, "--version", "print the version")
    .configureHelp({ showGlobalOptions: true })
    .addHelpText("after", `\n${FOOTER.flatMap((text) => wrap(text, helpWidth())).join("\n")}`)
    // A mistake is one sentence here; commander would print two lines.
    .configureOutput({
      writeOut: (text) => options.stdout.write(text),
      outputError: () => undefined,
      getOutHelpWidth: helpWidth,
    })
    .exitOverride()
    .helpOption("-h, --help", "this text; behind a command: its own")
    .helpCommand(false)
    .action((words: readonly string[]) => {
      if (words[0] === undefined || words[0] === "help") commandIn(program, words.slice(1)).outputHelp();
      else throw noSuchCommand(words, commands);
    })
    // In `apply -f FILE` the command is wrong, and the option is right.
    .allowUnknownOption()
    .argument("[COMMAND...]");
  program.configureHelp({
    showGlobalOptions: true,
    subcommandTerm: (one) => one.name(),
    visibleArguments,
    minWidthToWrap: NARROWEST_COLUMN,
  });
  for (const command of commands) addCommand(program, command, run);
  return program;
}

/** The command named behind `help`. @throws CliError */
function commandIn(program: Commander, words: readonly string[]): Commander {
  return words.reduce((above, word) => {
    const found = above.commands.find((one) => one.name() === word);
    if (found !== undefined) return found;
    throw new CliError(`${words.join(" ")}: no such command; --help lists them all`);
  }, program);
}

function noSuchCommand(words: readonly string[], commands: readonly Command[]): CliError {
  const [word = ""] = words;
  if (word.startsWith("-")) return new CliError(`${word}: no such option; \`--help\` lists them`);
  const familiar = familiarWords(words);
  if (familiar !== undefined) return new CliError(`${word}: no such command; ${familiar}`);
  return new CliError(`${word}: no such command${suggestion(word, commands)}; --help lists them all`);
}

/** Hides arguments that the command's own help explains. */
function visibleArguments(command: Commander): Argument[] {
  return command.parent === null ? [] : [...command.registeredArguments];
}

function withGlobals(program: Commander): Commander {
  return program
    .option("--kubeconfig <FILE>", "path of a kubeconfig")
    .option("--context <NAME>", "context of the kubeconfig; default: its current one")
    .option("-n, --namespace <NAME>", "namespace; default: that of the context")
    .option("-o, --output <FORMAT>", "table, json or yaml, and what else a command says that it prints")
    .option("--request-timeout <DURATION>", "how long to wait for each answer of the API server; default: 30s")
    .option("--no-color", "no colours; NO_COLOR, and pipes, do the same");
}

/** Global options whose value is the next word. */
const TAKES_NEXT = /^(?:-n|-o|--(?:kubeconfig|context|namespace|output|request-timeout))$/;

/** The first word of the command; undefined: there is none, or the user asks for the program's own help. */
export function wordOf(args: readonly string[]): string | undefined {
  const at = args.findIndex((word, index) => !word.startsWith("-") && !TAKES_NEXT.test(args[index - 1] ?? ""));
  return args.slice(0, at).some((word) => /^(?:-h|--help|--version)$/.test(word)) ? undefined : args[at];
}

function addCommand(program: Commander, command: Command, run: Run): void {
  const words = command.name.split(" ");
  const name = words.pop() ?? "";
  const parent = words.reduce((above, word) => groupNamed(above, word, command.group), program);
  const added = parent.command(name).summary(command.summary).description(descriptionOf(command));
  if (parent !== program) parent.summary(parent.commands.map((one) => `${one.name()}: ${one.summary()}`).join("; "));
  added.helpGroup(`${command.group}:`);
  for (const { name, about } of command.arguments ?? []) added.addArgument(new Argument(name, about));
  for (const option of command.options ?? []) added.addOption(optionOf(option));
  added.addHelpText("after", `\nExamples:\n${command.examples.map((line) => `  ${line}`).join("\n")}`);
  if (command.exits)
    added.addHelpText("after", `\nExit codes:\n${command.exits.map((line) => `  ${line}`).join("\n")}`);
  added.action(async (...given: readonly unknown[]) => {
    const self = given.at(-1) as Commander;
    const { kubeconfig, context, namespace, output, requestTimeout } = self.optsWithGlobals();
    const globals = { kubeconfig, context, namespace, output, requestTimeout };
    await run(command, new Input(self.args, self.opts()), globals);
  });
}

/** The group `set` of `set image`; it is created with the first command that needs it. */
function groupNamed(above: Commander, word: string, group: string): Commander {
  const there = above.commands.find((one) => one.name() === word);
  if (there) return there;
  const made = above.command(word).helpGroup(`${group}:`).allowExcessArguments().allowUnknownOption();
  return made.action(() => {
    const [given] = made.args;
    const what = given === undefined ? `${word}: say what` : `${word} ${given}: no such command`;
    throw new CliError(`${what}: ${made.commands.map((one) => `${word} ${one.name()}`).join(" or ")}`);
  });
}

function descriptionOf({ summary, details, outputs }: Command): string {
  const forms = outputs ? `\n\n-o takes ${outputs === "file" ? "the file to write" : outputs.join(", ")}.` : "";
  return `${summary[0]?.toUpperCase()}${summary.slice(1)}.${details ? `\n\n${details}` : ""}${forms}`;
}

function optionOf({ flags, about, isList, choices }: NonNullable<Command["options"]>[number]): Option {
  const option = new Option(flags, about);
  if (choices) option.choices(choices);
  if (isList) option.argParser((value: string, before: readonly string[] | undefined) => [...(before ?? []), value]);
  return option;
}

function suggestion(word: string, commands: readonly Command[]): string {
  const first = commands.map(({ name }) => name.split(" ")[0] ?? "").filter((name) => name !== "complete-words");
  const near = nearest(word, first) ?? first.find((name) => word.length >= 3 && name.startsWith(word));
  return near === undefined ? "" : `, perhaps ${near}`;
}

function failureOf(error: unknown, screen: Screen): number {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0;
    screen.warn(mistake(error));
    return 2;
  }
  const message = error instanceof Error ? error.message : String(error);
  screen.warn(`${message.replaceAll("\n", " ")}${hintFor(error)}`);
  return error instanceof CliError ? 2 : 1;
}

/** Rewrites commander's messages in the style of the others. */
function mistake({ code, message }: CommanderError): string {
  const [sentence = ""] = message.replace(/^error: /, "").split("\n");
  const [, word = ""] = /'([^']+)'/.exec(sentence) ?? [];
  const [, meant] = /Did you mean (?:one of )?([^?,]+)/.exec(message) ?? [];
  if (code === "commander.unknownOption")
    return `${word}: no such option${meant === undefined ? "" : `, perhaps ${meant}`}; \`--help\` lists them`;
  if (code === "commander.missingArgument") return `${word.toUpperCase()} is missing; \`--help\` says what goes where`;
  if (code === "commander.optionMissingArgument") return `${word}: its value is missing`;
  if (code === "commander.excessArguments") return `${excess(sentence)}; \`--help\` says what goes where`;
  return `${sentence}; \`--help\` lists the options`;
}

function excess(sentence: string): string {
  const [, command, wanted, given] = /for '([^']+)'\. Expected (\d+) arguments? but got (\d+)/.exec(sentence) ?? [];
  return command === undefined
    ? sentence
    : `${command} takes ${counted(Number(wanted), "word")}, and ${given} were given`;
}

function hintFor(error: unknown): string {
  if (isKubeError(error, 401)) return "; renew your credentials, or choose others with --context";
  if (isKubeError(error, 403))
    return "; ask who runs the cluster for that right, or choose another user with --context";
  if (isKubeError(error) && error.code === 0 && /ECONNREFUSED|Refused|Unreachable|Timeout/i.test(error.reason))
    return "; see that the cluster is up, or choose another with --kubeconfig or --context";
  return "";
}

/** Maps words of kubectl and similar tools to the commands that do the same here. */
const EDIT =
  "write the manifest with `kubectl apply -f FILE`; `diff -f FILE` and `plan -f FILE` say first what it does";
const RECREATE =
  "`explain NAME` says which pods need to be recreated, and the command that recreates them; a container alone: `kubectl delete pod`, or set image";

/** The answer to each first word. Texts in backticks are commands of this program, or of kubectl. */
const FAMILIAR: Readonly<Record<string, string>> = {
  apply: EDIT,
  cancel: "use `abort NAME`",
  config: "choose a context with --context, and a kubeconfig with --kubeconfig",
  context: "choose a context with --context",
  continue: "use `resume NAME`, or `promote NAME` for the next wave",
  create: EDIT,
  delete: "use `kubectl delete sidecarset NAME`; running pods keep their sidecars",
  describe: "use `explain NAME`, or `explain pod/NAME`",
  diagnose: "use `check` for the installation, `explain NAME` for a SidecarSet",
  doctor: "use `check`",
  "dry-run": "use `plan NAME`",
  edit: EDIT,
  events: "use `explain NAME`, or `kubectl describe sidecarset NAME`",
  freeze: "use `pause NAME`",
  get: "use `status` for all SidecarSets, `pods NAME` for the pods of one",
  halt: "use `pause NAME`",
  health: "use `check`",
  image: "use `set image NAME CONTAINER=IMAGE`",
  inject: "use `preview -f FILE` for what a pod would get; pods get their sidecars when they are created",
  list: "use `status` for all SidecarSets, `pods NAME` for the pods of one",
  log: "use `kubectl logs POD -c CONTAINER`",
  logs: "use `kubectl logs POD -c CONTAINER`",
  ls: "use `status` for all SidecarSets, `pods NAME` for the pods of one",
  next: "use `promote NAME`",
  patch: EDIT,
  recreate: RECREATE,
  remove: "use `kubectl delete sidecarset NAME`; running pods keep their sidecars",
  render: "use `preview -f FILE`",
  replace: EDIT,
  restart: RECREATE,
  revert: "use `undo NAME`",
  rm: "use `kubectl delete sidecarset NAME`; running pods keep their sidecars",
  rollback: "use `undo NAME`",
  scale: "use `set max-unavailable NAME`, or `set partition NAME`, for how fast a rollout goes",
  show: "use `status NAME`, or `explain NAME`",
  sidecarset: "leave the kind out: `status NAME`",
  sidecarsets: "use `status`",
  simulate: "use `plan NAME`",
  start: "use `resume NAME`",
  stop: "use `pause NAME`, or `abort NAME` to go back",
  template: "use `preview -f FILE`",
  test: "use `lint FILE` for files, `check` for an installation",
  unpause: "use `resume NAME`",
  update: "use `set image NAME CONTAINER=IMAGE`",
  upgrade: "use `set image NAME CONTAINER=IMAGE`; of this program and its functions: docs/upgrade.md",
  validate: "use `lint FILE`",
  verify: "use `lint FILE` for files, `check` for an installation",
  wait: "use `status NAME -w`",
  watch: "use `status NAME -w`",
  why: "use `explain NAME`, or `explain pod/NAME`",
};

const ROLLOUT: ReadonlySet<string> = new Set(["status", "history", "pause", "resume", "undo"]);

/** The command to use for words of similar tools; undefined: no command is similar. */
export function familiarWords([first = "", second = ""]: readonly string[]): string | undefined {
  const word = first.toLowerCase();
  if (word === "rollout") {
    if (second === "restart") return RECREATE;
    return `leave the word out: \`${ROLLOUT.has(second) ? second : "status"} NAME\``;
  }
  if (/^[a-z.]+\/[^/]+(\/[^/]+)?$/.test(word)) return `say what to do with it, for example \`explain ${word}\``;
  if (/^[a-z][a-z0-9]*(-[a-z0-9]+)+$/.test(word) && /\d/.test(word))
    return `of a pod of that name: \`explain pod/${word}\``;
  return Object.hasOwn(FAMILIAR, word) ? FAMILIAR[word] : undefined;
}
