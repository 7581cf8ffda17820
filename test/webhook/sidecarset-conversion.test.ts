/** Tests that a conversion of SidecarSets converts every object of a request, or none. */
import { expect, test } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { SIDECARSET_V1ALPHA1, SIDECARSET_V1BETA1 } from "../../shared/api/names.ts";
import { convertSidecarSets } from "../../shared/webhook/handlers/sidecarset-conversion.ts";

const of = (apiVersion: string, metadata?: object) =>
  ({
    apiVersion,
    kind: "SidecarSet",
    ...(metadata === undefined ? {} : { metadata }),
    spec: { selector: { matchLabels: { app: "web" } } },
  }) as KubernetesObject;
const converted = (...objects: KubernetesObject[]) =>
  convertSidecarSets({ uid: "u", desiredAPIVersion: SIDECARSET_V1BETA1, objects });

test("a conversion returns every object in the wanted version and in the same order", () => {
  const result = converted(of(SIDECARSET_V1ALPHA1, { name: "a" }), of(SIDECARSET_V1BETA1, { name: "b" }));
  expect(result.map(({ apiVersion, metadata }) => [apiVersion, metadata?.name])).toEqual([
    [SIDECARSET_V1BETA1, "a"],
    [SIDECARSET_V1BETA1, "b"],
  ]);
});

test.each([
  [{ name: "b" }, "SidecarSet b: there is no conversion from apps.kruise.io/v2 to apps.kruise.io/v1beta1"],
  [{}, "SidecarSet without a name: there is no conversion from apps.kruise.io/v2 to apps.kruise.io/v1beta1"],
  [undefined, "SidecarSet without a name: there is no conversion from apps.kruise.io/v2 to apps.kruise.io/v1beta1"],
])("one SidecarSet that cannot be converted fails the conversion and is named (metadata %j)", (metadata, message) => {
  expect(() => converted(of(SIDECARSET_V1ALPHA1, { name: "a" }), of("apps.kruise.io/v2", metadata))).toThrow(message);
});
