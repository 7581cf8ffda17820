import { describe, expect, test } from "vitest";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../shared/core/statefulset/step.ts";
import { readCallLimits, readConfig, readQueue } from "../../shared/settings/config.ts";
import { ConfigError } from "../../shared/settings/config-error.ts";

const GATES = ["AllAlpha", "AllBeta", ...Object.keys(readConfig({}).featureGates)].join(", ");

describe("readConfig:", () => {
  test("readConfig returns the defaults for an empty environment", () => {
    expect(readConfig({})).toEqual({
      kruiseNamespace: "kruise-system",
      freshnessMs: 0,
      featureGates: {
        ...DEFAULT_STATEFUL_SET_FEATURE_GATES,
        EnableSortSidecarContainerByName: false,
        KruiseDaemon: true,
        KruisePodReadinessGate: false,
        PodOptOut: false,
        RespectDisruptionBudgets: false,
        ResourcesDeletionProtection: true,
        SidecarSetPatchPodMetadataDefaultsAllowed: false,
        SidecarTerminator: false,
        SidecarTerminatorByPhase: false,
        SkipUpgradableCondition: false,
        InPlaceResize: false,
        NativeSidecarInPlaceUpdate: false,
        StrictMaxUnavailable: false,
        TemplateNoDefaults: false,
      },
      isKeepingRegistration: false,
      logLevel: "info",
    });
  });

  test("readConfig reads the namespace, the freshness, the feature gates and the log level", () => {
    const env = {
      POD_NAMESPACE: "kruise",
      VIEW_FRESHNESS_MS: "1000",
      FEATURE_GATES: " EnableSortSidecarContainerByName = true,SidecarSetPatchPodMetadataDefaultsAllowed=false,",
      LOG_LEVEL: "debug",
    };
    expect(readConfig(env)).toEqual({
      kruiseNamespace: "kruise",
      freshnessMs: 1000,
      featureGates: {
        ...readConfig({}).featureGates,
        EnableSortSidecarContainerByName: true,
      },
      isKeepingRegistration: false,
      logLevel: "debug",
    });
  });

  test.each([
    ["POD_NAMESPACE", "Kruise", "POD_NAMESPACE=Kruise is not the name of a namespace."],
    ["VIEW_FRESHNESS_MS", "1s", "VIEW_FRESHNESS_MS=1s is not a whole number of milliseconds."],
    ["VIEW_FRESHNESS_MS", "-1", "VIEW_FRESHNESS_MS=-1 is not a whole number of milliseconds."],
    [
      "VIEW_FRESHNESS_MS",
      "300001",
      "VIEW_FRESHNESS_MS=300001 is more than five minutes: pods would go without what was written long before them.",
    ],
    ["LOG_LEVEL", "loud", "LOG_LEVEL=loud is none of debug, info, warn, error."],
    ["FEATURE_GATES", "Sort=true", `FEATURE_GATES names Sort, which is none of ${GATES}.`],
    [
      "FEATURE_GATES",
      "EnableSortSidecarContainerByName=yes",
      'FEATURE_GATES sets EnableSortSidecarContainerByName to "yes", which is neither true nor false.',
    ],
    ["FEATURE_GATES", "toString=true", `FEATURE_GATES names toString, which is none of ${GATES}.`],
  ])("%s=%s is refused in one sentence", (variable, value, sentence) => {
    expect(() => readConfig({ [variable]: value })).toThrow(new ConfigError(sentence));
  });
});

describe("FEATURE_GATES:", () => {
  const gatesOf = (text: string) => readConfig({ FEATURE_GATES: text }).featureGates;
  const changed = (text: string) => {
    const before = new Map(Object.entries(gatesOf("")));
    return Object.entries(gatesOf(text)).flatMap(([gate, isOn]) => (before.get(gate) === isOn ? [] : [gate]));
  };
  const ALPHA = [
    "EnableSortSidecarContainerByName",
    "KruisePodReadinessGate",
    "PreparingUpdateAsUpdate",
    "SidecarSetPatchPodMetadataDefaultsAllowed",
    "SidecarTerminator",
    "StatefulSetAutoResizePVCGate",
    "StatefulSetStartOrdinal",
    "TemplateNoDefaults",
  ];

  test("AllAlpha and AllBeta change only OpenKruise's gates of that stage", () => {
    expect(changed("AllAlpha=true").toSorted()).toEqual(ALPHA);
    expect(changed("AllAlpha=true,AllBeta=true").toSorted()).toEqual(ALPHA);
    expect(changed("AllBeta=false").toSorted()).toEqual([
      "InPlaceUpdateEnvFromMetadata",
      "KruiseDaemon",
      "PodIndexLabel",
      "ResourcesDeletionProtection",
      "StatefulSetAutoDeletePVC",
    ]);
    expect(changed("AllAlpha=false")).toEqual([]);
  });

  test("the value of a single gate overrides AllAlpha, before or after it", () => {
    const but = (gate: string) => ALPHA.filter((one) => one !== gate);
    expect(changed("AllAlpha=true,SidecarTerminator=false").toSorted()).toEqual(but("SidecarTerminator"));
    expect(changed("TemplateNoDefaults=false,AllAlpha=true").toSorted()).toEqual(but("TemplateNoDefaults"));
  });

  test("KruiseDaemon=false turns off the gates that need it, as in OpenKruise", () => {
    expect(changed("SidecarTerminator=true,InPlaceUpdateEnvFromMetadata=true,KruiseDaemon=false").toSorted()).toEqual([
      "InPlaceUpdateEnvFromMetadata",
      "KruiseDaemon",
    ]);
  });

  test("FEATURE_GATES may turn off OpenKruise's gates for features that do not exist here", () => {
    expect(changed("EnableExternalCerts=false,WorkloadSpread=false,PodWebhook=true")).toEqual([]);
  });

  test.each([
    [
      "WorkloadSpread=true",
      "FEATURE_GATES turns WorkloadSpread on, OpenKruise's gate for a feature that is not served here.",
    ],
    ["PodWebhook=false", "FEATURE_GATES turns PodWebhook off: leave the pod webhook out of the registration instead."],
    ["AllAlpha=1", 'FEATURE_GATES sets AllAlpha to "1", which is neither true nor false.'],
    ["AllGamma=true", `FEATURE_GATES names AllGamma, which is none of ${GATES}.`],
  ])("FEATURE_GATES=%s is refused in one sentence", (text, sentence) => {
    expect(() => gatesOf(text)).toThrow(new ConfigError(sentence));
  });
});

describe("QUEUE_URL:", () => {
  const QUEUE_URL = "https://sqs.eu-central-1.amazonaws.com/123456789012/rollout.fifo";

  test("readQueue returns undefined without QUEUE_URL, or else the URL and the region", () => {
    expect([readQueue({}), readQueue({ QUEUE_URL: "" })]).toEqual([undefined, undefined]);
    expect(readQueue({ QUEUE_URL, AWS_REGION: "eu-central-1" })).toEqual({ url: QUEUE_URL, region: "eu-central-1" });
  });

  test.each([
    [{ QUEUE_URL: "rollout.fifo" }, "is not the address of a FIFO queue"],
    [{ QUEUE_URL: QUEUE_URL.replace(".fifo", "") }, "is not the address of a FIFO queue"],
    [{ QUEUE_URL }, "QUEUE_URL needs AWS_REGION"],
  ])("readQueue refuses %j", (env, sentence) => {
    expect(() => readQueue(env)).toThrow(sentence);
  });
});

describe("limits of calls to the API server:", () => {
  test("by default 64 calls run at once without a limit per second, and variables change these limits", () => {
    expect(readCallLimits({ CLIENT_QPS: "" })).toEqual({ qps: 0, burst: 0, atOnce: 64 });
    const env = { CLIENT_QPS: "30", CLIENT_BURST: "50", CLIENT_CONCURRENCY: "4" };
    expect(readCallLimits(env)).toEqual({ qps: 30, burst: 50, atOnce: 4 });
  });

  test.each([
    [{ CLIENT_QPS: "fast" }, "CLIENT_QPS=fast is not a whole number of calls."],
    [{ CLIENT_BURST: "-1" }, "CLIENT_BURST=-1 is not a whole number of calls."],
    [{ CLIENT_CONCURRENCY: "0" }, "CLIENT_CONCURRENCY=0 would never ask the API server: write 1 or more."],
  ])("the environment %j is refused in one sentence", (env, sentence) => {
    expect(() => readCallLimits(env)).toThrow(new ConfigError(sentence));
  });
});
