import { expect, it } from "vitest";
import { parseArguments, UsageError } from "../e2e/support/arguments.ts";

const NONE = {
  kubeconfig: undefined,
  consent: undefined,
  webhookHost: undefined,
  kubernetes: undefined,
  kubelet: undefined,
  isSoak: false,
  isOnNode: false,
  others: [],
};

it.each([
  ["no arguments", [], NONE],
  [
    "arguments for vitest",
    ["stuck", "-t", "a Job", "--bail=1"],
    { ...NONE, others: ["stuck", "-t", "a Job", "--bail=1"] },
  ],
  ["the option --kubeconfig", ["--kubeconfig", "f", "rbac"], { ...NONE, kubeconfig: "f", others: ["rbac"] }],
  ["the option --kubeconfig=FILE", ["--kubeconfig=a=b"], { ...NONE, kubeconfig: "a=b" }],
  [
    "the options --consent and --webhook-host",
    ["--consent", "kind", "--webhook-host=172.17.0.1", "--kubeconfig", "f"],
    { ...NONE, kubeconfig: "f", consent: "kind", webhookHost: "172.17.0.1" },
  ],
  [
    "the option --kubernetes",
    ["--kubernetes", "1.33", "rollout"],
    { ...NONE, kubernetes: "1.33", others: ["rollout"] },
  ],
  [
    "the options --node and --kubelet",
    ["--node", "--kubernetes=1.37", "--kubelet", "1.35"],
    { ...NONE, isOnNode: true, kubernetes: "1.37", kubelet: "1.35" },
  ],
  ["the option --node", ["--node", "registry"], { ...NONE, isOnNode: true, others: ["registry"] }],
  ["the option --soak with a file", ["--soak", "faults"], { ...NONE, isSoak: true, others: ["faults"] }],
])("parseArguments reads %s", (_what, args, expected) => {
  expect(parseArguments(args)).toEqual(expected);
});

it.each([
  ["an option without a value", ["--kubeconfig"], "--kubeconfig: its value is missing"],
  [
    "--node together with --kubeconfig",
    ["--node", "--kubeconfig", "f"],
    "--node starts a cluster of its own, so it does not go with --kubeconfig",
  ],
  [
    "--kubernetes together with --kubeconfig",
    ["--kubernetes=1.33", "--kubeconfig", "f"],
    "--kubernetes starts a cluster of its own, so it does not go with --kubeconfig",
  ],
  ["--kubelet without --node", ["--kubelet", "1.35"], "--kubelet is about the node of --node, which is missing"],
  ["an option with an empty value", ["--consent="], "--consent: its value is missing"],
  [
    "--webhook-host without --kubeconfig",
    ["--webhook-host", "h"],
    "--consent and --webhook-host are about the cluster of --kubeconfig, which is missing",
  ],
])("parseArguments refuses %s in one sentence", (_what, args, sentence) => {
  expect(() => parseArguments(args)).toThrow(new UsageError(sentence));
});
