/** Tells whether admissions of pods work now. */
import type { ClusterView } from "../view/cluster-view.ts";
import { type Deciding, decideSample, type SampleOptions } from "./sample-decision.ts";

/** Rejects unless SidecarSets can be read and this build decides correctly. Lambda's pod webhook loads it on demand. */
export async function checkPods(options: SampleOptions & { readonly view: ClusterView }, deciding: Deciding) {
  await options.view.listSidecarSets();
  await decideSample(options, deciding);
}
