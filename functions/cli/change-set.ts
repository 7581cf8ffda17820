/** A change to a SidecarSet that lands only if nobody else changed it since it was read. */
import type { SidecarSet, SidecarSetSpec } from "../../shared/api/sidecarset.ts";
import { isKubeError } from "../../shared/kube/error.ts";
import { type Cluster, SIDECARSETS } from "../../shared/kube/port.ts";
import { CliError } from "../cli-error.ts";
import type { Input } from "./command.ts";
import type { Session } from "./session.ts";

/** Of a merge patch: null takes a field away. */
type SpecPatch = { readonly [field in keyof SidecarSetSpec]?: SidecarSetSpec[field] | null };

export interface Change {
  readonly spec: SpecPatch;
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
  const dryRun = input.isSet("dry-run");
  const body = { metadata: { uid, resourceVersion }, spec: change.spec };
  const stored = await cluster
    .patch<SidecarSet>(SIDECARSETS, { name }, { type: "merge", body }, { dryRun })
    .catch((error: unknown) => {
      throw isKubeError(error, 409)
        ? new CliError(`SidecarSet ${name} was changed by somebody else just now; look at it again, then repeat`)
        : error;
    });
  const { text, notes = [] } = change;
  const result = { sidecarSet: name, change: text, dryRun, notes, generation: stored.metadata?.generation };
  session.print(result, (screen) => {
    screen.line(`${name}: ${text}${dryRun ? " (dry run, nothing is stored)" : ""}`);
    for (const note of notes) screen.line({ text: note, color: "yellow" });
  });
}

export interface ChangeOf {
  readonly sidecarSet: SidecarSet;
  readonly change: Change;
}
