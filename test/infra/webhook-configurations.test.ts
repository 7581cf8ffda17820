import { spawnSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { webhookConfigurations } from "../../infra/webhooks/webhook-configurations.ts";
import { selectorMatches } from "../../shared/core/lib/label-selector.ts";

/** OpenKruise's registrations, written out with what the API server fills in. */
const FILLED_IN = { matchPolicy: "Equivalent", timeoutSeconds: 10 };
const OPENKRUISE = { failurePolicy: "Fail", sideEffects: "None", admissionReviewVersions: ["v1", "v1beta1"] };
const SIDECARSETS = {
  operations: ["CREATE", "UPDATE"],
  apiGroups: ["apps.kruise.io"],
  apiVersions: ["v1alpha1", "v1beta1"],
  resources: ["sidecarsets"],
};
const clientConfig = (path: string) => ({ url: `https://sidecarset-webhooks.invalid${path}` });
const REFERENCE = [
  {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "MutatingWebhookConfiguration",
    metadata: { name: "kruise-mutating-webhook-configuration" },
    webhooks: [
      {
        name: "mpod.kb.io",
        clientConfig: clientConfig("/mutate-pod"),
        rules: [{ operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods"] }],
        namespaceSelector: { matchExpressions: [{ key: "control-plane", operator: "DoesNotExist" }] },
        reinvocationPolicy: "Never",
        ...OPENKRUISE,
        ...FILLED_IN,
      },
      {
        name: "msidecarset.kb.io",
        clientConfig: clientConfig("/mutate-apps-kruise-io-sidecarset"),
        rules: [SIDECARSETS],
        reinvocationPolicy: "Never",
        ...OPENKRUISE,
        ...FILLED_IN,
      },
    ],
  },
  {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingWebhookConfiguration",
    metadata: { name: "kruise-validating-webhook-configuration" },
    webhooks: [
      {
        name: "vsidecarset.kb.io",
        clientConfig: clientConfig("/validate-apps-kruise-io-sidecarset"),
        rules: [SIDECARSETS],
        ...OPENKRUISE,
        ...FILLED_IN,
      },
    ],
  },
];

describe("infra/generate.ts", () => {
  const generate = (...args: string[]) =>
    spawnSync(process.execPath, ["infra/generate.ts", ...args], { encoding: "utf8" });

  test("--like-openkruise prints OpenKruise's registrations, and writes nothing", () => {
    const { stdout, status } = generate("--like-openkruise");
    expect(parseAllDocuments(stdout).map((document) => document.toJS())).toEqual(REFERENCE);
    expect([status, stdout.includes("infra/")]).toEqual([0, false]);
  });

  test("an option that does not exist writes nothing and fails", () => {
    expect(generate("--like-openkruse")).toMatchObject({ stdout: "", status: 1 });
  });
});

describe("which namespaces' pods are asked about", () => {
  const address = { url: "https://webhooks.example.com" };
  const selector = (likeOpenKruise: boolean) => {
    const webhooks = webhookConfigurations(address, { likeOpenKruise }).flatMap((each) => each.webhooks);
    return (webhooks as { namespaceSelector?: object }[]).flatMap(({ namespaceSelector }) => namespaceSelector ?? []);
  };

  test.each([
    ["any", { "kubernetes.io/metadata.name": "shop" }, true, true],
    ["one with a control-plane label", { "control-plane": "x" }, false, false],
    ["kube-system", { "kubernetes.io/metadata.name": "kube-system" }, false, true],
    ["kube-node-lease", { "kubernetes.io/metadata.name": "kube-node-lease" }, false, true],
  ])("%s", (_, labels, ours, openKruise) => {
    const matches = (likeOpenKruise: boolean) => selector(likeOpenKruise).map((each) => selectorMatches(each, labels));
    expect([matches(false), matches(true)]).toEqual([[ours], [openKruise]]);
  });
});

test("only names and namespaces are not OpenKruise's", () => {
  const address = { url: "https://sidecarset-webhooks.invalid" };
  const [ours, like] = [webhookConfigurations(address), webhookConfigurations(address, { likeOpenKruise: true })];
  const comparable = (configurations: typeof ours) =>
    configurations.map(({ metadata: _metadata, ...configuration }) => ({
      ...configuration,
      webhooks: configuration.webhooks.map((webhook) => ({ ...webhook, namespaceSelector: undefined })),
    }));
  expect(comparable(ours)).toEqual(comparable(like));
  expect(ours.map(({ metadata }) => metadata?.name)).toEqual([
    "sidecarset-mutating-webhook-configuration",
    "sidecarset-validating-webhook-configuration",
  ]);
});
