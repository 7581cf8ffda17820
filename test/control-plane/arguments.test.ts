import { expect, it } from "vitest";
import { parseArguments, UsageError } from "../e2e/support/arguments.ts";

const NONE = {
  kubeconfig: undefined,
  consent: undefined,
  webhookHost: undefined,
  isSoak: false,
  isOnNode: false,
  others: [],
};

it.each([
  ["nothing", [], NONE],
  ["what is vitest's", ["stuck", "-t", "a Job", "--bail=1"], { ...NONE, others: ["stuck", "-t", "a Job", "--bail=1"] }],
  ["a kubeconfig", ["--kubeconfig", "f", "rbac"], { ...NONE, kubeconfig: "f", others: ["rbac"] }],
  ["a kubeconfig after an equals sign", ["--kubeconfig=a=b"], { ...NONE, kubeconfig: "a=b" }],
  [
    "all that goes with a kubeconfig",
    ["--consent", "kind", "--webhook-host=172.17.0.1", "--kubeconfig", "f"],
    { ...NONE, kubeconfig: "f", consent: "kind", webhookHost: "172.17.0.1" },
  ],
  ["a real node", ["--node", "registry"], { ...NONE, isOnNode: true, others: ["registry"] }],
  ["a soak run of some files", ["--soak", "faults"], { ...NONE, isSoak: true, others: ["faults"] }],
])("%s", (_what, args, expected) => {
  expect(parseArguments(args)).toEqual(expected);
});

it.each([
  ["no value", ["--kubeconfig"], "--kubeconfig: its value is missing"],
  [
    "a real node of a given cluster",
    ["--node", "--kubeconfig", "f"],
    "--node starts a cluster of its own, so it does not go with --kubeconfig",
  ],
  ["an empty value", ["--consent="], "--consent: its value is missing"],
  [
    "no kubeconfig",
    ["--webhook-host", "h"],
    "--consent and --webhook-host are about the cluster of --kubeconfig, which is missing",
  ],
])("%s is refused in a sentence", (_what, args, sentence) => {
  expect(() => parseArguments(args)).toThrow(new UsageError(sentence));
});
