/** What a SidecarSet that is not stored yet would find in the cluster. */
import type { Namespace } from "../../../shared/api/kubernetes.ts";
import { SIDECARSET_KIND } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { listAll, observePods } from "../../../shared/controller/rollout/observe-pods.ts";
import { Reading } from "../../../shared/controller/rollout/reading.ts";
import { type NewSetEffect, newSetEffect } from "../../../shared/core/inspect/diff/diff.ts";
import { counted } from "../../../shared/go/counted.ts";
import { isKubeError } from "../../../shared/kube/error.ts";
import { type Cluster, NAMESPACES, SIDECARSETS } from "../../../shared/kube/port.ts";
import { showRenewals } from "../../terminal/renewals.ts";
import type { Screen } from "../../terminal/screen.ts";
import { wrap } from "../../terminal/table.ts";
import type { Session } from "../session.ts";
import { readNeighbours, requireValid } from "./given-set.ts";

interface Given {
  readonly sidecarSet: SidecarSet;
  readonly place: string;
}

/** The one that is stored under its name; undefined: none is. @throws KubeError */
export async function storedSet(cluster: Cluster, { sidecarSet }: Given): Promise<SidecarSet | undefined> {
  try {
    return await cluster.get<SidecarSet>(SIDECARSETS, { name: sidecarSet.metadata?.name ?? "" });
  } catch (error) {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  }
}

/** Which pods it selects and how they get its sidecars. @throws CliError for what the webhook would refuse */
export async function readNewSet(session: Session, cluster: Cluster, given: Given): Promise<NewSetEffect> {
  const { sidecarSet, place } = given;
  requireValid(sidecarSet, undefined, place, await readNeighbours(session, cluster, sidecarSet));
  const reading = new Reading(sidecarSet, { resources: false, workloads: true, budgetLabels: undefined });
  const { view } = await observePods(cluster, sidecarSet, reading);
  const namespaces = (await listAll<Namespace, Namespace>(cluster, NAMESPACES, {}, (one) => one)).items;
  return newSetEffect([...view.pods], { namespaces, settings: await session.passSettings(cluster) });
}

const NAMED = 5;

export function showNewSet({ pods, renewals, excluded }: NewSetEffect, name: string, screen: Screen): void {
  const paragraph = (text: string) => {
    for (const line of wrap(text, screen.width)) screen.line(line);
  };
  screen.line(
    { text: `${SIDECARSET_KIND} ${name}`, color: "bold" },
    " is not stored yet, and the webhook would accept it.",
  );
  if (pods.length === 0) paragraph("No pod that runs matches its selector.");
  else {
    const named = pods.slice(0, NAMED).map(({ namespace, name: pod }) => `${namespace}/${pod}`);
    const more = pods.length > NAMED ? [`${pods.length - NAMED} more (-o json has all)`] : [];
    paragraph(
      `${counted(pods.length, "pod that runs matches", "pods that run match")} its selector, and ${pods.length === 1 ? "gets" : "get"} its sidecars only when recreated: ${[...named, ...more].join(", ")}`,
    );
  }
  for (const { namespace, pods: count } of excluded)
    paragraph(
      `${counted(count, "more pod", "more pods")} in ${namespace} ${count === 1 ? "never gets" : "never get"} them: API servers ask no webhook there.`,
    );
  showRenewals(renewals, screen);
}
