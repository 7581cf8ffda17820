import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { Refusal } from "../../../shared/core/admission/admission.ts";
import { type InjectionOptions, injectSidecarSets } from "../../../shared/core/injection/inject-sidecar-sets.ts";
import { listedPod } from "../../support/objects.ts";

const OPTIONS: InjectionOptions = { now: "2026-01-02T03:04:05Z", namespace: "shop", sortContainersByName: false };
const IS_INJECTED = { name: "IS_INJECTED", value: "true" };
const WORKING = "kruise.io/sidecarset-working-hotupgrade-container";

function injected(pod: Pod, sidecarSet: SidecarSet): Pod {
  const after = injectSidecarSets(pod, [sidecarSet], OPTIONS);
  if (after instanceof Refusal) throw new Error(after.message);
  return after;
}

describe("injectSidecarSets:", () => {
  test("an empty pod gets the container and the annotations, but no empty lists", () => {
    const record = '{"":{"updateTimestamp":"2026-01-02T03:04:05Z","hash":"","sidecarSetName":"","sidecarList":["s"]}}';
    expect(injected({} as Pod, { spec: { containers: [{ name: "s" }] } })).toStrictEqual({
      metadata: {
        annotations: {
          "kruise.io/sidecarset-hash": record,
          "kruise.io/sidecarset-hash-without-image": record,
          "kruise.io/sidecarset-injected-list": "",
        },
      },
      spec: { containers: [{ name: "s", env: [IS_INJECTED] }] },
    });
  });

  test("a SidecarSet without containers is in the injected list, but has no hash on the pod", () => {
    const named = (name: string, spec: SidecarSet["spec"]): SidecarSet => ({ metadata: { name }, spec });
    const sidecarSets = [named("none", { containers: [] }), named("one", { containers: [{ name: "s" }] })];
    const after = injectSidecarSets({ spec: { containers: [] } }, sidecarSets, OPTIONS);
    const record =
      '{"one":{"updateTimestamp":"2026-01-02T03:04:05Z","hash":"","sidecarSetName":"one","sidecarList":["s"]}}';
    expect(after).toMatchObject({
      metadata: {
        annotations: {
          "kruise.io/sidecarset-hash": record,
          "kruise.io/sidecarset-hash-without-image": record,
          "kruise.io/sidecarset-injected-list": "none,one",
        },
      },
    });
  });

  test("a pull secret without a name is not added to a pod that already has one", () => {
    const sidecarSet = { spec: { containers: [{ name: "s" }], imagePullSecrets: [{}, { name: "a" }] } };
    const pod: Pod = { spec: { containers: [], imagePullSecrets: [{}] } };
    expect(injected(pod, sidecarSet).spec.imagePullSecrets).toEqual([{}, { name: "a" }]);
  });

  test("a pod without a spec is refused if a resourcesPolicy needs a target container", () => {
    const policy = { targetContainersMode: "sum", targetContainersNameRegex: ".*", resourcesExpr: {} };
    const sidecarSet = { spec: { containers: [{ name: "s", resourcesPolicy: policy }] } };
    expect(injectSidecarSets({} as Pod, [sidecarSet], OPTIONS)).toEqual(
      new Refusal('no containers match the regex pattern ".*"'),
    );
  });

  test("the refusal of an unreadable hash annotation names only the namespace of a pod without a name", () => {
    const pod = { metadata: { annotations: { "kruise.io/sidecarset-hash": "[" } } } as unknown as Pod;
    expect(injectSidecarSets(pod, [{ spec: {} }], OPTIONS)).toEqual(
      new Refusal(
        "pod(shop/) invalid annotations[kruise.io/sidecarset-hash] value [, unmarshal failed: unexpected end of JSON input",
      ),
    );
  });

  const HOT: SidecarSet = { spec: { containers: [{ name: "s", upgradeStrategy: { upgradeType: "HotUpgrade" } }] } };
  const rows: readonly [sentence: string, before: string, after: string][] = [
    [
      "the annotation of working hot-upgrade containers keeps the entries of other sidecars",
      '{"other":"other-2"}',
      '{"other":"other-2","s":"s-1"}',
    ],
    [
      "an entry that is not a string becomes an empty string in the annotation of working hot-upgrade containers",
      '{"other":1}',
      '{"other":"","s":"s-1"}',
    ],
    ["an annotation of working hot-upgrade containers that is a list is replaced", '["other"]', '{"s":"s-1"}'],
    ["an annotation of working hot-upgrade containers that is not JSON is replaced", "{other", '{"s":"s-1"}'],
  ];
  test.each(rows)("%s", (_, before, after) => {
    const pod: Pod = listedPod({ annotations: { [WORKING]: before } });
    expect(injected(pod, HOT).metadata?.annotations?.[WORKING]).toBe(after);
  });
});
