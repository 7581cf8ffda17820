import { spawnSync } from "node:child_process";
import { evaluate } from "@marcbachmann/cel-js";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { selectorMatches } from "../../shared/go/label-selector.ts";
import {
  type RegistrationOptions,
  webhookConfigurations,
} from "../../shared/install/webhooks/webhook-configurations.ts";

/** OpenKruise's registrations, with the API server's defaults. */
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

describe("infra/generate.ts:", () => {
  const generate = (...args: string[]) =>
    spawnSync(process.execPath, ["infra/generate.ts", ...args], { encoding: "utf8" });

  test("generate.ts --like-openkruise prints OpenKruise's registrations and writes no file", () => {
    const { stdout, status } = generate("--like-openkruise");
    expect(parseAllDocuments(stdout).map((document) => document.toJS())).toEqual(REFERENCE);
    expect([status, stdout.includes("infra/")]).toEqual([0, false]);
  });

  test("generate.ts prints nothing and fails for an unknown option", () => {
    expect(generate("--like-openkruse")).toMatchObject({ stdout: "", status: 1 });
  });
});

describe("the namespace selector of the pod webhook:", () => {
  const address = { url: "https://webhooks.example.com" };
  const selector = (likeOpenKruise: boolean) => {
    const webhooks = webhookConfigurations(address, { likeOpenKruise }).flatMap((each) => each.webhooks);
    return (webhooks as { namespaceSelector?: object }[]).flatMap(({ namespaceSelector }) => namespaceSelector ?? []);
  };

  test.each([
    ["the pod webhook gets the pods of an ordinary namespace", { "kubernetes.io/metadata.name": "shop" }, true, true],
    ["the pod webhook gets no pods of a namespace with a control-plane label", { "control-plane": "x" }, false, false],
    [
      "the pod webhook gets no pods of kube-system, and OpenKruise's does",
      { "kubernetes.io/metadata.name": "kube-system" },
      false,
      true,
    ],
    [
      "the pod webhook gets no pods of kube-node-lease, and OpenKruise's does",
      { "kubernetes.io/metadata.name": "kube-node-lease" },
      false,
      true,
    ],
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

describe("registrations compared with OpenKruise's:", () => {
  test("the registrations differ from OpenKruise's only in names, selectors, policies, timeouts, side effects and announcements", () => {
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

  test("the validating webhook gets every create, update and delete of SidecarSets and their status under one condition", () => {
    const [, , validation] = registered();
    expect(validation).toMatchObject({
      clientConfig: { url: `${ADDRESS.url}/announce-apps-kruise-io-sidecarset` },
      rules: [{ operations: ["CREATE", "UPDATE", "DELETE"], resources: ["sidecarsets", "sidecarsets/status"] }],
      matchConditions: [{ name: "changes-what-pods-get" }],
    });
  });

  test("only the validating webhook has side effects, and it has none for dry runs", () => {
    expect(registered().map(({ name, sideEffects }) => [name, sideEffects])).toEqual([
      ["mpod.kb.io", "None"],
      ["msidecarset.kb.io", "None"],
      ["vsidecarset.kb.io", "NoneOnDryRun"],
    ]);
  });

  test("the failure policy is Ignore for pods and Fail for SidecarSets", () => {
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

  test("podCondition adds a match condition after the condition about mirror pods", () => {
    const [pods, ...others] = registered({ podCondition: "1 == 1" });
    expect(pods?.matchConditions).toMatchObject([
      { name: "not-a-mirror-pod" },
      { name: "needs-the-webhook", expression: "1 == 1" },
    ]);
    const names = others.flatMap(({ matchConditions = [] }) => matchConditions.map(({ name }) => name));
    expect(names).toEqual(["changes-what-pods-get"]);
  });

  test.each([
    ["the pod webhook gets a pod without annotations", {}, true],
    [
      "the pod webhook gets a pod with another annotation of the kubelet",
      { annotations: { "kubernetes.io/config.hash": "x" } },
      true,
    ],
    ["the pod webhook does not get a mirror pod", { annotations: { "kubernetes.io/config.mirror": "x" } }, false],
  ])("%s", (_, metadata, isAsked) => {
    const expression = registered()[0]?.matchConditions?.[0]?.expression ?? "";
    expect(evaluate(expression, { object: { metadata } })).toBe(isAsked);
  });
});
