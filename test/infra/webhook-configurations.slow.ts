import { spawnSync } from "node:child_process";
import { evaluate } from "@marcbachmann/cel-js";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { selectorMatches } from "../../shared/go/label-selector.ts";
import {
  type RegistrationOptions,
  webhookConfigurations,
} from "../../shared/install/webhooks/webhook-configurations.ts";

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

const ADDRESS = { url: "https://sidecarset-webhooks.invalid" };

interface Registered {
  readonly name: string;
  readonly failurePolicy: string;
  readonly timeoutSeconds: number;
  readonly sideEffects: string;
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
}

function registered(options: RegistrationOptions = {}): readonly Registered[] {
  return webhookConfigurations(ADDRESS, options).flatMap(({ webhooks }) => webhooks as readonly Registered[]);
}

describe("how our registrations differ from OpenKruise's", () => {
  test("in names, namespaces, timeouts, in what becomes of pods, and in that writes are announced; in nothing else", () => {
    const comparable = (webhooks: readonly Registered[]) =>
      webhooks.map(({ matchConditions: _c, timeoutSeconds: _t, failurePolicy: _f, ...webhook }) => ({
        ...webhook,
        namespaceSelector: undefined,
        sideEffects: undefined,
        ...(webhook.name === "vsidecarset.kb.io" ? { clientConfig: undefined, rules: undefined } : {}),
      }));
    expect(comparable(registered())).toEqual(comparable(registered({ likeOpenKruise: true })));
    expect(webhookConfigurations(ADDRESS).map(({ metadata }) => metadata?.name)).toEqual([
      "kruise-sidecarset-mutating-webhook-configuration",
      "sidecarset-validating-webhook-configuration",
    ]);
  });

  test("each write of a SidecarSet is announced, but for what a pass counts in its status", () => {
    const [, , validation] = registered();
    expect(validation).toMatchObject({
      clientConfig: { url: `${ADDRESS.url}/announce-apps-kruise-io-sidecarset` },
      rules: [{ operations: ["CREATE", "UPDATE", "DELETE"], resources: ["sidecarsets", "sidecarsets/status"] }],
      matchConditions: [{ name: "changes-what-pods-get" }],
    });
  });

  test("who tells the rollout of changes says that dry runs have no side effects, and others have none", () => {
    expect(registered().map(({ name, sideEffects }) => [name, sideEffects])).toEqual([
      ["mpod.kb.io", "None"],
      ["msidecarset.kb.io", "None"],
      ["vsidecarset.kb.io", "NoneOnDryRun"],
    ]);
  });

  test("pods come without sidecars while the webhook is down, SidecarSets don't come at all", () => {
    const policies = registered().map(({ name, failurePolicy, timeoutSeconds }) => [
      name,
      failurePolicy,
      timeoutSeconds,
    ]);
    expect(policies).toEqual([
      ["mpod.kb.io", "Ignore", 5],
      ["msidecarset.kb.io", "Fail", 5],
      ["vsidecarset.kb.io", "Fail", 5],
    ]);
    expect(registered({ podFailurePolicy: "Fail" })[0]).toMatchObject({ failurePolicy: "Fail" });
  });

  test("a condition for pods comes after the one about mirror pods", () => {
    const [pods, ...others] = registered({ podCondition: "1 == 1" });
    expect(pods?.matchConditions).toMatchObject([
      { name: "not-a-mirror-pod" },
      { name: "needs-the-webhook", expression: "1 == 1" },
    ]);
    const names = others.flatMap(({ matchConditions = [] }) => matchConditions.map(({ name }) => name));
    expect(names).toEqual(["changes-what-pods-get"]);
  });

  test.each([
    ["a pod without annotations", {}, true],
    ["another pod", { annotations: { "kubernetes.io/config.hash": "x" } }, true],
    ["a mirror pod", { annotations: { "kubernetes.io/config.mirror": "x" } }, false],
  ])("%s", (_, metadata, isAsked) => {
    const expression = registered()[0]?.matchConditions?.[0]?.expression ?? "";
    expect(evaluate(expression, { object: { metadata } })).toBe(isAsked);
  });
});
