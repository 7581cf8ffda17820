import { expect, test } from "vitest";
import { validateSidecarSet } from "../../shared/core/rollout/validate-sidecarset.ts";
import { KRUISE_NAMESPACE, scenes } from "./arbitraries.ts";
import { holds } from "./holds.ts";

test("the validating webhook allows every generated SidecarSet, except a canary without its base", () => {
  const resource = { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" };
  holds(scenes, ["several", "revisions", "canaries"], ({ sidecarSets, revisions }, seen) => {
    // alpha comes first, because a canary may not precede its base.
    const inTurn = sidecarSets.toSorted((a, b) => ((a.metadata?.name ?? "") < (b.metadata?.name ?? "") ? -1 : 1));
    seen("several", inTurn.length > 1);
    for (const [index, object] of inTurn.entries()) {
      const isCanary = object.metadata?.annotations?.["apps.kruise.io/sidecarset-canary"] === "true";
      seen("canaries", isCanary);
      seen("revisions", object.spec.injectionStrategy?.revision !== undefined);
      const hasBase = inTurn.some(({ metadata }) => metadata?.name === "alpha");
      const admission = validateSidecarSet(
        { uid: "u", resource, operation: "CREATE", object },
        {
          sidecarSets: inTurn.slice(0, index),
          controllerRevisions: revisions,
          configMaps: [],
          kruiseNamespace: KRUISE_NAMESPACE,
          featureGates: { SidecarSetPatchPodMetadataDefaultsAllowed: true },
        },
      );
      if (isCanary && !hasBase) expect(admission).toMatchObject({ errors: [{ field: "metadata" }] });
      else expect(admission).toEqual({ kind: "allowed" });
    }
  });
});
