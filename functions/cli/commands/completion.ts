/** `completion`: the script for a shell, and the words that it asks for. */
import type { Cluster } from "../../../shared/kube/port.ts";
import type { Command } from "../command.ts";
import { listSets, readSet, SET_KIND } from "../input/read-set.ts";
import type { Session } from "../session.ts";
import { listStatefulSets } from "../statefulset/read-statefulset.ts";
import { containersOf } from "./set-image.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;

/** The scripts ask the program itself for words, so names in the cluster are completed too. */
const SCRIPTS: Readonly<Record<(typeof SHELLS)[number], string>> = {
  bash: `_sidecarset() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "$("\${COMP_WORDS[0]}" complete-words -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" -- "\${COMP_WORDS[COMP_CWORD]}"))
  [ \${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _sidecarset sidecarset kubectl-sidecarset
`,
  zsh: `#compdef sidecarset kubectl-sidecarset
_sidecarset() {
  local -a found
  found=("\${(@f)$("\${words[1]}" complete-words -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "\${found[1]}" ]]; then compadd -a found; else _files; fi
}
compdef _sidecarset sidecarset kubectl-sidecarset
`,
  fish: `function __sidecarset_words
  set -l words (commandline -opc) (commandline -ct)
  $words[1] complete-words -- $words[2..-1] 2>/dev/null
end
complete -c sidecarset -a '(__sidecarset_words)'
complete -c kubectl-sidecarset -a '(__sidecarset_words)'
`,
};

export const COMPLETION: Command = {
  name: "completion",
  group: "Install it",
  summary: "what bash, zsh or fish have to run to complete words",
  details:
    'For `kubectl sidecarset`, put an executable kubectl_complete-sidecarset into the PATH: #!/bin/sh, then: kubectl-sidecarset complete-words -- "$@"',
  arguments: [{ name: "<SHELL>", about: SHELLS.join(", "), completion: "none" }],
  examples: ["source <(sidecarset completion bash)", "sidecarset completion fish | source"],
  run: async (input, session) => {
    const shell = SHELLS.find((one) => one === input.argument(0));
    if (shell === undefined) {
      session.screen.warn(`${input.argument(0)}: write one of ${SHELLS.join(", ")}`);
      return 2;
    }
    session.screen.text(SCRIPTS[shell]);
    return 0;
  },
};

/** The words for the scripts that may replace the last typed word. */
export function completeWords(commands: () => readonly Command[]): Command {
  return {
    name: "complete-words",
    group: "Install it",
    summary: "for the scripts of completion: which words may come next",
    arguments: [{ name: "[WORDS...]", about: "what was typed so far; the last may be empty" }],
    examples: ["sidecarset complete-words -- pl"],
    run: async (input, session) => {
      const words = await wordsFor(commands(), input.arguments, session);
      session.screen.text(words.map((word) => `${word}\n`).join(""));
      return 0;
    },
  };
}

async function wordsFor(
  commands: readonly Command[],
  typed: readonly string[],
  session: Session,
): Promise<readonly string[]> {
  const [before, last] = [typed.slice(0, -1).filter((word) => !word.startsWith("-")), typed.at(-1) ?? ""];
  const command = commands.find(({ name }) => name.split(" ").every((word, index) => before[index] === word));
  const candidates = command ? await wordsOf(command, before, last, session) : nextNames(commands, before);
  return [...new Set(candidates)].filter((word) => word.startsWith(last));
}

/** Next words of commands that have two words: for `set image` first `set`, then `image`. */
function nextNames(commands: readonly Command[], before: readonly string[]): readonly string[] {
  return commands.flatMap(({ name }) => {
    const words = name.split(" ");
    const isOnTheWay = before.every((word, index) => words[index] === word);
    return isOnTheWay ? (words[before.length] ?? []) : [];
  });
}

async function wordsOf(
  { name, options = [], arguments: given = [] }: Command,
  before: readonly string[],
  last: string,
  session: Session,
): Promise<readonly string[]> {
  if (last.startsWith("-")) {
    const globals = [
      "--kubeconfig",
      "--context",
      "--namespace",
      "--output",
      "--request-timeout",
      "--no-color",
      "--help",
    ];
    return [...options.flatMap(({ flags }) => flags.match(/--[a-z-]+/) ?? []), ...globals];
  }
  const place = before.length - name.split(" ").length;
  const completion = given[Math.min(place, given.length - 1)]?.completion;
  if (completion !== "sidecarset" && completion !== "set" && completion !== "container") return [];
  const cluster = await session.cluster();
  if (completion === "container") return await containersFor(cluster, before[name.split(" ").length] ?? "");
  const names = (await listSets(cluster)).map(({ metadata }) => metadata?.name ?? "");
  if (completion === "sidecarset") return names;
  const ordered = (await statefulSetsOf(session, cluster)).map((one) => `${SET_KIND}/${one}`);
  return name === "explain" ? [...names.map((one) => `sidecarset/${one}`), ...ordered, "pod/"] : [...names, ...ordered];
}

/** The start of arguments, such as `fluent-bit=`; the user adds an image. */
async function containersFor(cluster: Cluster, sidecarSet: string): Promise<readonly string[]> {
  return containersOf(await readSet(cluster, sidecarSet)).map(({ name }) => `${name}=`);
}

/** Names of StatefulSets. A caller who may not list them gets no words. */
async function statefulSetsOf(session: Session, cluster: Cluster): Promise<readonly string[]> {
  const listing = listStatefulSets(cluster, await session.namespace());
  const sets = await listing.catch(() => []);
  return sets.map(({ metadata }) => metadata?.name ?? "");
}
