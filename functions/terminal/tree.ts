/** The picture of a rollout's progress: revisions and their pods as a tree, and a bar. */
import type { ControllerRevision } from "../../shared/api/kubernetes.ts";
import { counted } from "../../shared/go/counted.ts";
import type { Part, Screen } from "./screen.ts";

const PODS_SHOWN = 10;

interface Leaf {
  readonly label: string;
  /** name of the ControllerRevision; "" where none with the hash is left */
  readonly revision: string;
  readonly isUpdated: boolean;
  readonly isReady: boolean;
  readonly state: Part;
}

export interface Tree {
  readonly revisions: readonly ControllerRevision[];
  readonly pods: readonly Leaf[];
  readonly imagesOf: (revision: ControllerRevision) => string;
  /** every pod, not only a few of each revision */
  readonly hasAll: boolean;
}

/** The newest revision first. */
export function showTree(tree: Tree, screen: Screen): void {
  const { pods } = tree;
  const numbers = new Map(tree.revisions.map((one) => [one.metadata?.name ?? "", one]));
  const names = [...new Set(pods.map(({ revision }) => revision))];
  const byAge = names.toSorted((a, b) => (numbers.get(b)?.revision ?? 0) - (numbers.get(a)?.revision ?? 0));
  for (const [index, name] of byAge.entries()) {
    const isLast = index === byAge.length - 1;
    const revision = numbers.get(name);
    const those = pods.filter((pod) => pod.revision === name);
    const title = { text: name || "an older version, not recorded", color: "cyan" } as const;
    screen.line(isLast ? "└─ " : "├─ ", title, ageText(revision, those));
    const stem = isLast ? "   " : "│  ";
    const images = revision === undefined ? "" : tree.imagesOf(revision);
    if (images) screen.line(`${stem}   `, { text: images, color: "dim" });
    showPods(those, { stem, hasAll: tree.hasAll }, screen);
  }
}

function ageText(revision: ControllerRevision | undefined, pods: readonly Leaf[]): string {
  const newest = pods.some(({ isUpdated }) => isUpdated) ? ", the newest" : "";
  const count = `, ${counted(pods.length, "pod")}`;
  return revision === undefined ? count : `, revision ${revision.revision}${newest}, ${createdText(revision)}${count}`;
}

/** Shows pods that are not ready first. */
function showPods(
  pods: readonly Leaf[],
  { stem, hasAll }: { readonly stem: string; readonly hasAll: boolean },
  screen: Screen,
): void {
  const troubled = pods.toSorted((a, b) => Number(a.isReady) - Number(b.isReady));
  const shown = hasAll ? pods : troubled.slice(0, PODS_SHOWN);
  const more = pods.length - shown.length;
  for (const [index, { label, state }] of shown.entries()) {
    const twig = index === shown.length - 1 && more === 0 ? "└─ " : "├─ ";
    screen.line(stem, twig, `${label}  `, state);
  }
  if (more > 0) screen.line(stem, "└─ ", { text: `${more} more (--pods shows all)`, color: "dim" });
}

/** Characters of a bar. */
const WIDTH = 20;

/** A bar of the rollout's progress. `ready` counts updated pods only. */
export function bar(ready: number, updated: number, all: number): readonly Part[] {
  const share = (count: number) => (all === 0 ? 0 : Math.min(WIDTH, Math.floor((count / all) * WIDTH)));
  const [full, half] = [share(ready), share(updated)];
  return [
    { text: "█".repeat(full), color: "green" },
    { text: "▒".repeat(Math.max(0, half - full)), color: "yellow" },
    { text: "░".repeat(WIDTH - Math.max(full, half)), color: "dim" },
    ` ${updated}/${all}`,
  ];
}

/** A revision's SidecarSet, in the fields that one line shows. */
interface Recorded {
  readonly spec?: {
    readonly containers?: readonly { readonly name?: string; readonly image?: string }[] | null;
  };
}

/** `agent=agent:2, mesh=mesh:1` */
export function imagesText({ data }: ControllerRevision): string {
  const containers = (data as Recorded | undefined)?.spec?.containers ?? [];
  return containers.map(({ name, image }) => `${name}=${image}`).join(", ");
}

/** `created 2026-01-02T03:04:05Z` */
function createdText({ metadata }: ControllerRevision): string {
  return metadata?.creationTimestamp ? `created ${metadata.creationTimestamp}` : "not stored yet";
}
