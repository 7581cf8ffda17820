/** A change to a SidecarSet, or to another object, that lands only if nobody else changed it since it was read. */
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import type { RecordedSpec } from "../../shared/core/revision/revision-data.ts";
import { isKubeError } from "../../shared/kube/error.ts";
import { type Cluster, type PatchOptions, SIDECARSETS } from "../../shared/kube/port.ts";
import { CliError } from "../cli-error.ts";
import type { Input } from "./command.ts";
import type { Session } from "./session.ts";

export interface Change {
  readonly spec: RecordedSpec;
  /** what was done, as in "log-agent: paused" */
  readonly text: string;
  /** what to know about it, one sentence each */
  readonly notes?: readonly string[];
}

export const DRY_RUN = {
  flags: "--dry-run",
  about: "let the API server and the webhooks judge the change, and store nothing",
};

/** With --dry-run the API server checks it, webhooks included, and stores nothing. */
export async function changeSet(input: Input, session: Session, cluster: Cluster, given: ChangeOf): Promise<void> {
  const { sidecarSet, change } = given;
  const { name = "", uid, resourceVersion } = sidecarSet.metadata ?? {};
  const body = { metadata: { uid, resourceVersion }, spec: change.spec };
  const subject = { sidecarSet: name };
  const store = (options: PatchOptions) =>
    cluster.patch<SidecarSet>(SIDECARSETS, { name }, { type: "merge", body }, options);
  await storeChange(input, session, { title: `SidecarSet ${name}`, name, subject, change, store });
}

interface StoredChange {
  readonly title: string;
  readonly name: string;
  /** in the JSON */
  readonly subject: Readonly<Record<string, string>>;
  readonly change: Pick<Change, "text" | "notes">;
  /** a patch on condition that the object is as it was read */
  readonly store: (options: PatchOptions) => Promise<KubernetesObject>;
}

export async function storeChange(input: Input, session: Session, given: StoredChange): Promise<void> {
  const { title, name, subject, change, store } = given;
  const dryRun = input.isSet("dry-run");
  const stored = await store({ dryRun }).catch((error: unknown) => {
    throw isKubeError(error, 409)
      ? new CliError(`${title} was changed by somebody else just now; look at it again, then repeat`)
      : error;
  });
  const { text, notes = [] } = change;
  const result = { ...subject, change: text, dryRun, notes, generation: stored.metadata?.generation };
  session.print(result, (screen) => {
    screen.line(`${name}: ${text}${dryRun ? " (dry run, nothing is stored)" : ""}`);
    for (const note of notes) screen.line({ text: note, color: "yellow" });
  });
}

export interface ChangeOf {
  readonly sidecarSet: SidecarSet;
  readonly change: Change;
}
