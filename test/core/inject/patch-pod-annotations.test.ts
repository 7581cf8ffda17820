import { describe, expect, test } from "vitest";
import type { PatchPodMetadata, SidecarSet } from "../../../shared/api/sidecarset.ts";
import { Refusal } from "../../../shared/core/admission/admission.ts";
import { type Annotations, patchPodAnnotations } from "../../../shared/core/injection/record-injection.ts";

function patching(...patchPodMetadata: readonly PatchPodMetadata[]): SidecarSet {
  return { spec: { patchPodMetadata } };
}

const POD: Annotations = { kept: "1", empty: "", json: '{"a":1,"b":2}' };

describe("patchPodAnnotations:", () => {
  const rows: readonly [sentence: string, sidecarSets: readonly SidecarSet[], changes: Annotations][] = [
    [
      "the policy Retain sets only missing annotations",
      [patching({ patchPolicy: "Retain", annotations: { kept: "2", empty: "2", new: "2" } })],
      { new: "2" },
    ],
    [
      "a patch without a policy sets only missing annotations",
      [patching({ annotations: { kept: "2", new: "2" } })],
      { new: "2" },
    ],
    [
      "the policy Overwrite replaces an annotation",
      [patching({ patchPolicy: "Overwrite", annotations: { kept: "2" } })],
      { kept: "2" },
    ],
    [
      "the policy MergePatchJson merges JSON, and sets empty or missing annotations",
      [
        patching({
          patchPolicy: "MergePatchJson",
          annotations: { json: '{"b":null,"c":3}', empty: '{"c":null}', new: "{}" },
        }),
      ],
      { json: '{"a":1,"c":3}', empty: '{"c":null}', new: "{}" },
    ],
    ["a patch with an unknown policy is ignored", [patching({ patchPolicy: "Other", annotations: { new: "2" } })], {}],
    [
      "the patches of a later SidecarSet apply after those of an earlier one",
      [
        patching({ annotations: { new: "first" } }),
        patching({ annotations: { new: "second" }, patchPolicy: "Overwrite" }),
      ],
      { new: "second" },
    ],
  ];
  test.each(rows)("%s", (_, sidecarSets, changes) => {
    expect(patchPodAnnotations(POD, sidecarSets)).toEqual({ ...POD, ...changes });
  });

  test("patchPodAnnotations returns the same object if nothing changes", () => {
    expect(patchPodAnnotations(POD, [patching({ annotations: { kept: "2" } })])).toBe(POD);
  });

  const refused: readonly [key: string, patch: string, message: string][] = [
    ["json", "{bad", "Invalid JSON Patch"],
    ["kept", "{}", ""],
    ["json", "7", "Invalid JSON Patch"],
  ];
  test.each(refused)(
    "a merge of the annotation %j with %j gives the error %j (an empty error means success)",
    (key, patch, message) => {
      const result = patchPodAnnotations(POD, [
        patching({ patchPolicy: "MergePatchJson", annotations: { [key]: patch } }),
      ]);
      expect(result instanceof Refusal ? result.message : "").toBe(message);
    },
  );
});
