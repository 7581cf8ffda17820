import { expect, test } from "vitest";
import { defaultSet, mutateStatefulSet } from "../../../shared/core/statefulset/mutate.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../../shared/core/statefulset/step.ts";
import { setOf } from "./fixture.ts";

const HTTP = { path: "/", scheme: "HTTP", port: 80 };
const TIMES = { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 };

test("the startup probe of a pod template gets the defaults of other probes", () => {
  const container = { name: "main", image: "app:1", startupProbe: { httpGet: { port: 80 } } };
  const set = setOf({ template: { spec: { containers: [container] } } });
  const { spec } = defaultSet(set, DEFAULT_STATEFUL_SET_FEATURE_GATES, true);
  expect(spec.template?.spec?.containers[0]).toMatchObject({ startupProbe: { httpGet: HTTP, ...TIMES } });
});

test("the sizes in claim templates are rounded up to thousandths", () => {
  const claim = { metadata: { name: "data" }, spec: { resources: { requests: { storage: "1500u" } } } };
  const { spec } = defaultSet(setOf({ volumeClaimTemplates: [claim] }), DEFAULT_STATEFUL_SET_FEATURE_GATES, true);
  expect(spec.volumeClaimTemplates?.[0]?.spec?.resources?.requests).toEqual({ storage: "2m" });
});

test("ephemeral containers and the overhead of a template get defaults too", () => {
  const probe = { httpGet: { port: 80 } };
  const resources = { limits: { cpu: "1500u" } };
  const one = { name: "debug", ports: [{ containerPort: 80 }], startupProbe: probe, resources };
  const spec = { containers: [], ephemeralContainers: [one], overhead: { cpu: "100u" } };
  const set = defaultSet(setOf({ template: { spec } }), DEFAULT_STATEFUL_SET_FEATURE_GATES, true);
  expect(set.spec.template?.spec).toMatchObject({
    ephemeralContainers: [
      {
        name: "debug",
        ports: [{ containerPort: 80, protocol: "TCP" }],
        startupProbe: { httpGet: HTTP, ...TIMES },
        resources: { limits: { cpu: "2m" } },
      },
    ],
    overhead: { cpu: "1m" },
  });
  expect(set.spec.template?.spec).not.toHaveProperty("ephemeralContainers.0.terminationMessagePath");
});

test("the capacity in the status of a claim template is rounded up", () => {
  const claim = { metadata: { name: "data" }, spec: {}, status: { capacity: { storage: "1500u" } } };
  const { spec } = defaultSet(setOf({ volumeClaimTemplates: [claim] }), DEFAULT_STATEFUL_SET_FEATURE_GATES, true);
  expect(spec.volumeClaimTemplates?.[0]?.status).toEqual({ phase: "Pending", capacity: { storage: "2m" } });
});

test.each([{}, { template: {} }, { template: { spec: {} } }, { template: { spec: { containers: null } } }])(
  "a set without containers gets defaults: %j",
  (spec) => {
    const request = {
      uid: "1",
      resource: { group: "apps.kruise.io", version: "v1beta1", resource: "statefulsets" },
      operation: "CREATE",
      object: { apiVersion: "apps.kruise.io/v1beta1", kind: "StatefulSet", metadata: { name: "db" }, spec },
    };
    const admission = mutateStatefulSet(request, { ...DEFAULT_STATEFUL_SET_FEATURE_GATES, TemplateNoDefaults: false });
    const template = { spec: { containers: null, restartPolicy: "Always" } };
    expect(admission).toMatchObject({ kind: "allowed", object: { spec: { template } } });
  },
);
