/** The cases that the embedded cluster passes. A mistake of the embedded cluster is a failure here. */
import { expect, it } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { describeContract } from "../contract/contract.ts";
import { DEFINITIONS } from "../contract/gadgets.ts";
import { localTarget } from "../contract/local-target.ts";
import { SUBJECTS } from "../contract/subjects.ts";
import { apiServer } from "./support/access.ts";
import { clusterOf } from "./support/clients.ts";
import { contractTarget } from "./support/contract-target.ts";

describeContract("kube-apiserver", contractTarget, SUBJECTS);

it("no definition is left behind, because a stuck definition would block the deletion of every namespace", async () => {
  const cluster = clusterOf(apiServer());
  const left = async () => {
    const { items } = await cluster.list<KubernetesObject>(DEFINITIONS, {});
    return items.flatMap(({ metadata }) => (metadata?.name?.startsWith("gadgets.") ? [metadata.name] : []));
  };
  await expect.poll(left, { timeout: 60_000 }).toEqual([]);
});

describeContract("the embedded cluster", localTarget, SUBJECTS);
