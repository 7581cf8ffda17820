/** Installations with trouble in the definition, the rights or the passes. */
import type { Facts } from "../../../shared/core/inspect/check/facts.ts";
import { formatLedger } from "../../../shared/core/ledger.ts";
import { IN_ORDER, managed, NOW, type Row, SET, seen, updatedPod, withDefinition } from "./fixture.ts";

const ledgerOf = (name: string, count: number, time = NOW) => ({
  metadata: { namespace: "kruise-system", name: `sidecarset-ledger-${name}`, ...managed(time, "data") },
  data: formatLedger({
    uid: "uid-ss",
    generation: 1,
    reservations: Array.from({ length: count }, (_, index) => ({
      namespace: "default",
      name: `p${index}`,
      uid: `uid-${index}`,
      resourceVersion: "1",
      generation: 1,
      revision: "r",
    })),
  }),
});
const withLedgers = (...configMaps: readonly object[]): Facts => ({ ...IN_ORDER, configMaps: seen(configMaps) });

export const CLUSTER: readonly Row[] = [
  ["DefinitionMissing", "none", { ...IN_ORDER, definition: seen(undefined) }, /knows no SidecarSets/],
  [
    "VersionNotServed",
    "v1alpha1 is off",
    withDefinition(({ versions = [] }) => ({
      versions: versions.map((one) => ({ ...one, served: one.name === "v1beta1" })),
    })),
    /v1alpha1 is not served/,
  ],
  [
    "VersionNotStored",
    "v1alpha1 is stored",
    withDefinition(({ versions = [] }) => ({
      versions: versions.map((one) => ({ ...one, storage: one.name === "v1alpha1" })),
    })),
    /stored as v1alpha1/,
  ],
  [
    "OldVersionStored",
    "some are stored so",
    withDefinition(() => ({}), { storedVersions: ["v1alpha1", "v1beta1"] }),
    /may be stored as v1alpha1/,
  ],
  ["ConversionMissing", "None", withDefinition(() => ({ conversion: { strategy: "None" } })), /no conversion webhook/],
  [
    "ConversionElsewhere",
    "OpenKruise's",
    withDefinition(() => ({
      conversion: {
        strategy: "Webhook",
        webhook: { clientConfig: { service: { namespace: "kruise-system", name: "kruise-webhook-service" } } },
      },
    })),
    /asked of OpenKruise/,
  ],
  [
    "SchemaOld",
    "fields are missing",
    withDefinition(({ versions = [] }) => ({
      versions: versions.map((one) => ({
        ...one,
        schema: { openAPIV3Schema: { properties: { spec: { properties: {} }, status: {} } } },
      })),
    })),
    /\.spec\./,
  ],
  [
    "ApiServerOld",
    "1.25",
    { ...IN_ORDER, version: seen({ major: "1", minor: "25", gitVersion: "v1.25.3" }) },
    /older than 1\.28/,
  ],
  [
    "RightMissing",
    "patch pods",
    { ...IN_ORDER, rights: seen([{ account: "a", what: "patch pods", role: "base", isAllowed: false }]) },
    /may not patch pods/,
  ],
  [
    "RightTooWide",
    "get secrets",
    { ...IN_ORDER, rights: seen([{ account: "a", what: "get secrets", role: "none", isAllowed: true }]) },
    /may get secrets/,
  ],
  [
    "OptionalRoleMissing",
    "pods with a launch order",
    {
      ...IN_ORDER,
      pods: seen([
        {
          ...updatedPod(),
          metadata: {
            ...updatedPod().metadata,
            annotations: {
              ...updatedPod().metadata?.annotations,
              "apps.kruise.io/container-launch-priority": "Ordered",
            },
          },
        },
      ]),
    },
    /1 pod has a launch order/,
  ],
  [
    "OptionalRoleMissing",
    "requests that nobody may serve",
    {
      ...IN_ORDER,
      optionalObjects: seen({ "container-recreate": 2 }),
      rights: seen([{ account: "a", what: "patch x", role: "container-recreate", isAllowed: false }]),
    },
    /2 objects are there that it serves.*patch x/,
  ],
  ["TickUnknown", "no Lease", { ...IN_ORDER, lastPass: seen(undefined) }, /no pass has run from here yet/],
  [
    "TickNeverRan",
    "no Lease, and nothing recorded",
    {
      ...IN_ORDER,
      lastPass: seen(undefined),
      sidecarSets: seen([{ ...SET, metadata: { ...SET.metadata, generation: 2 } }]),
    },
    /no pass has recorded 1 SidecarSet:/,
  ],
  ["TickNotRunning", "two hours ago", { ...IN_ORDER, lastPass: seen("2025-05-31T22:00:00Z") }, /2 hours ago/],
  ["ClockSkew", "a minute", { ...IN_ORDER, skewSeconds: seen(60) }, /60 seconds behind/],
  [
    "LedgerUnreadable",
    "somebody's text",
    withLedgers({ metadata: { namespace: "kruise-system", name: "sidecarset-ledger-ss" }, data: { x: "y" } }),
    /no ledger/,
  ],
  ["ReservationsHeld", "for an hour", withLedgers(ledgerOf("ss", 2, "2025-05-31T23:00:00Z")), /2 pods are reserved/],
  ["LedgerLeft", "of a SidecarSet that is gone", withLedgers(ledgerOf("gone", 0)), /is gone/],
  [
    "ChangeNotSeen",
    "generation 2",
    { ...IN_ORDER, sidecarSets: seen([{ ...SET, metadata: { ...SET.metadata, generation: 2 } }]) },
    /generation 2, recorded 1/,
  ],
];
