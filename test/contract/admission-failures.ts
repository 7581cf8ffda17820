/** Cases of webhooks that fail, under both failure policies. */
import { expect } from "vitest";
import { hookName, withWebhooks } from "./admission-setup.ts";
import { type ContractCase, createMap, refused } from "./contract.ts";
import type { Reaction } from "./webhook-server.ts";

const FAILED = `failed calling webhook "${hookName("/mutate")}": `;

interface Failure {
  readonly reaction: Reaction;
  readonly message: string | RegExp;
}

const REVIEW = { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview" };

const FAILURES: Readonly<Record<string, Failure>> = {
  "does not answer in time": { reaction: "hang", message: /context deadline exceeded|Client\.Timeout/ },
  "answers 500": { reaction: 500, message: /an error on the server/ },
  "answers 404": { reaction: 404, message: /the server could not find the requested resource/ },
  "answers with text that is not JSON": {
    reaction: { text: "yes" },
    message: /couldn't get version\/kind; json parse error/,
  },
  "answers with another uid": {
    reaction: { text: JSON.stringify({ ...REVIEW, response: { uid: "other", allowed: true } }) },
    message: /received invalid webhook response: expected response\.uid=/,
  },
  "answers with another kind": {
    reaction: { text: JSON.stringify({ apiVersion: "v1", kind: "Pod" }) },
    message: /failed to call webhook: no kind "Pod" is registered for version "v1"/,
  },
  "answers with another API version": {
    reaction: { text: JSON.stringify({ ...REVIEW, apiVersion: "admission.k8s.io/v1beta1" }) },
    message: /converting \(v1beta1\.AdmissionReview\) to \(v1\.AdmissionReview\): unknown conversion/,
  },
  "returns a patch without a patchType": {
    reaction: { allowed: true, patch: Buffer.from("[]").toString("base64") },
    message: /webhook returned response\.patch but not response\.patchType/,
  },
};

/**
 * Seconds of a webhook's timeout. Only a webhook that never answers uses all of them; 5 are enough on a busy machine.
 */
const secondsFor = (reaction: Reaction) => (reaction === "hang" ? 5 : 30);

const DOWN = { url: "https://127.0.0.1:1/mutate" };

export const ADMISSION_FAILURE_CASES: readonly ContractCase[] = [
  ...Object.entries(FAILURES).flatMap(([what, { reaction, message }]) => [
    withWebhooks(`a webhook that ${what} makes the request fail with failurePolicy Fail`, async (admission) => {
      const { server, install, ...context } = admission;
      server.answer("/mutate", () => reaction);
      await install({ type: "mutating", path: "/mutate", webhook: { timeoutSeconds: secondsFor(reaction) } });
      const error = await refused(createMap(context, "a"), { code: 500, reason: "InternalError", message });
      expect(error.message).toContain(FAILED);
    }),
    withWebhooks(`a webhook that ${what} is ignored with failurePolicy Ignore`, async (admission) => {
      const { server, install, ...context } = admission;
      server.answer("/mutate", () => reaction);
      const webhook = { timeoutSeconds: secondsFor(reaction), failurePolicy: "Ignore" };
      await install({ type: "mutating", path: "/mutate", webhook });
      expect((await createMap(context, "a")).metadata?.name).toBe("a");
      // The namespace's own ConfigMap may be created at the same moment.
      expect(server.requests("/mutate").filter(({ name }) => name === "a")).toHaveLength(1);
    }),
  ]),
  withWebhooks(
    "a webhook without a server makes the request fail with failurePolicy Fail",
    async ({ install, ...context }) => {
      await install({ type: "mutating", path: "/mutate", webhook: { clientConfig: DOWN } });
      const error = await refused(createMap(context, "a"), {
        code: 500,
        reason: "InternalError",
        message: /connection refused/,
      });
      expect(error.message).toContain(
        `${FAILED}failed to call webhook: Post "https://127.0.0.1:1/mutate?timeout=10s": `,
      );
    },
  ),
  withWebhooks("a webhook without a server is ignored with failurePolicy Ignore", async ({ install, ...context }) => {
    await install({ type: "mutating", path: "/mutate", webhook: { clientConfig: DOWN, failurePolicy: "Ignore" } });
    expect((await createMap(context, "a")).metadata?.name).toBe("a");
  }),
  withWebhooks("a webhook whose certificate another authority signed makes the request fail", async (admission) => {
    const { server, install, ...context } = admission;
    const clientConfig = { url: server.url("/mutate") };
    await install({ type: "mutating", path: "/mutate", webhook: { clientConfig } });
    const message = /tls: failed to verify certificate: x509: /;
    await refused(createMap(context, "a"), { code: 500, message });
    expect(server.requests("/mutate")).toHaveLength(0);
  }),
  withWebhooks(
    "a webhook's denial refuses the request also with failurePolicy Ignore",
    async ({ server, install, ...context }) => {
      server.answer("/mutate", () => ({ allowed: false, status: { message: "no" } }));
      await install({ type: "mutating", path: "/mutate", webhook: { failurePolicy: "Ignore" } });
      await refused(createMap(context, "a"), { code: 400, message: /denied the request: no$/ });
    },
  ),
];
