import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ALBEvent, APIGatewayProxyEventV2 } from "aws-lambda";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { lambdaWebhook } from "../../functions/lambda/http.ts";
import type { AdmissionReview, ConversionReview } from "../../shared/api/admission.ts";
import { mutateSidecarSet } from "../../shared/core/sidecarset/mutate.ts";
import { convertSidecarSets } from "../../shared/webhook/handlers/sidecarset-conversion.ts";
import { answerConversions } from "../../shared/webhook/review/conversion.ts";
import { registeredPath } from "../../shared/webhook/server/path-secret.ts";
import { commonName, createAuthority } from "../webhook/certificates.ts";
import {
  type DoorRequest,
  functionUrl,
  httpApi,
  loadBalancer,
  loadBalancerMultiValue,
  TARGET_GROUP,
} from "./events.ts";

const DOORS = { functionUrl, httpApi, loadBalancer, loadBalancerMultiValue };
type Door = keyof typeof DOORS;
const PATH = "/mutate-apps-kruise-io-sidecarset";
const NAME = "kube-apiserver";

const token = randomBytes(32).toString("base64url");
const secret = randomBytes(32).toString("base64url");
let folder: string;
let right: string;
let wrong: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "doors-"));
  await writeFile(join(folder, "secrets"), secret);
  await writeFile(join(folder, "tokens"), token);
  const { sign } = await createAuthority();
  right = (await sign({ subject: commonName(NAME) })).cert;
  wrong = (await sign({ subject: commonName("somebody") })).cert;
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true });
});

/** A function that is set up again. */
function created(mode: string, more: Readonly<Record<string, string>> = {}) {
  const env = {
    AUTHENTICATION: mode,
    PATH_SECRETS: join(folder, "secrets"),
    BEARER_TOKENS: join(folder, "tokens"),
    CLIENT_NAMES: NAME,
    CLIENT_CERTIFICATE_FROM: "",
    LOAD_BALANCER_LISTENER: `${TARGET_GROUP}:443`,
    LOG_LEVEL: "error",
    ...more,
  };
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  return lambdaWebhook(() => ({
    admissions: { [PATH]: mutateSidecarSet },
    conversions: { "/convert": answerConversions(convertSidecarSets) },
  }));
}

/** No text of an object may be longer than 256 KiB. */
const pieces = (text: string) => ({ ...text.match(/.{1,200000}/gs) });
const sidecarSet = (padding = "") => ({
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "SidecarSet",
  metadata: { name: "web", annotations: pieces(padding) },
  spec: { selector: { matchLabels: { a: "b" } }, containers: [{ name: "agent", image: "agent:1" }] },
});
function review(padding = ""): string {
  const resource = { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" };
  const request = { uid: "u", operation: "CREATE", resource, object: sidecarSet(padding) };
  return JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request });
}
const inPath = (body: string): DoorRequest => ({ path: registeredPath(secret, PATH), body });
type Event = APIGatewayProxyEventV2 | ALBEvent;
const responseOf = ({ body = "" }: { readonly body?: string | undefined }) =>
  (JSON.parse(body) as AdmissionReview).response;

describe.each(Object.keys(DOORS) as Door[])("%s", (name) => {
  const door: (request: DoorRequest) => Event = DOORS[name];

  test("a request by secret path is answered with a patch", async () => {
    const result = await created("secret-path")(door(inPath(review())));
    expect(result).toMatchObject({ statusCode: 200, isBase64Encoded: false });
    expect(responseOf(result)).toMatchObject({ uid: "u", allowed: true, patchType: "JSONPatch" });
    const headers = name === "loadBalancerMultiValue" ? result.multiValueHeaders : result.headers;
    expect(headers?.["content-type"]).toEqual(
      name === "loadBalancerMultiValue" ? ["application/json"] : "application/json",
    );
  });

  test("a body in base64 is the same", async () => {
    const handler = created("secret-path");
    const plain = await handler(door(inPath(review("ä"))));
    expect(await handler(door({ ...inPath(review("ä")), isBase64Encoded: true }))).toEqual(plain);
  });

  test("the same event twice is answered the same twice, and left as it was", async () => {
    const handler = created("secret-path");
    const event = door(inPath(review()));
    const before = structuredClone(event);
    const answers = [await handler(event), await handler(event)];
    expect(answers[0]).toEqual(answers[1]);
    expect(event).toEqual(before);
  });

  test.each([
    ["no secret", { path: PATH }],
    ["a wrong secret", { path: `/s/${"x".repeat(43)}${PATH}` }],
    ["the secret of another path", { path: registeredPath(randomBytes(32).toString("base64url"), PATH) }],
    ["another path", { path: "/elsewhere" }],
    ["another method", { path: PATH, method: "GET" }],
  ])("%s → 401", async (_, shape) => {
    const { statusCode, body = "" } = await created("secret-path")(door({ body: review(), ...shape }));
    expect([statusCode, body.includes(secret)]).toEqual([401, false]);
  });

  test("a bearer token, whatever the case of its header's name", async () => {
    const handler = created("bearer-token");
    const send = async (header: string, value: string) =>
      (await handler(door({ path: PATH, body: review(), headers: { [header]: value } }))).statusCode;
    expect(await send("authorization", `Bearer ${token}`)).toBe(200);
    if (name.startsWith("loadBalancer")) expect(await send("Authorization", `Bearer ${token}`)).toBe(200);
    expect(await send("authorization", `Bearer ${token}, Bearer ${token}`)).toBe(401);
  });

  test("no body → 400", async () => {
    expect((await created("secret-path")(door(inPath("")))).statusCode).toBe(400);
  });
});

describe("a client certificate", () => {
  const send = async (from: string, door: Door, more: Partial<DoorRequest>) => {
    const handler = created("client-certificate", { CLIENT_CERTIFICATE_FROM: from });
    return (await handler(DOORS[door]({ path: PATH, body: review(), ...more }))).statusCode;
  };
  const leaf = () => ({ "x-amzn-mtls-clientcert-leaf": encodeURIComponent(right) });

  test("as API Gateway passes it", async () => {
    expect(await send("api-gateway", "httpApi", { certificate: right })).toBe(200);
    expect(await send("api-gateway", "httpApi", { certificate: wrong })).toBe(401);
    expect(await send("api-gateway", "httpApi", { certificate: "-----BEGIN CERTIFICATE-----\nx" })).toBe(401);
    expect(await send("api-gateway", "httpApi", {})).toBe(401);
  });

  test.each(["loadBalancer", "loadBalancerMultiValue"] as const)("as a load balancer passes it: %s", async (door) => {
    expect(await send("load-balancer", door, { certificate: right })).toBe(200);
    expect(await send("load-balancer", door, { certificate: wrong })).toBe(401);
    expect(await send("load-balancer", door, { headers: { "x-amzn-mtls-clientcert-leaf": "%E0%A4%A" } })).toBe(401);
    expect(await send("load-balancer", door, {})).toBe(401);
  });

  test("a Function URL has none, whatever headers say", async () => {
    expect(await send("api-gateway", "functionUrl", {})).toBe(401);
    expect(await send("load-balancer", "functionUrl", { headers: leaf() })).toBe(401);
    expect(await send("api-gateway", "functionUrl", { headers: leaf() })).toBe(401);
  });

  test("a header of load balancers is only believed where one is configured, and an API's only where that is", async () => {
    expect(await send("api-gateway", "loadBalancer", { certificate: right })).toBe(401);
    expect(await send("load-balancer", "httpApi", { certificate: right })).toBe(401);
    expect(await send("api-gateway", "httpApi", { headers: leaf() })).toBe(401);
  });

  describe("that is not the one header of the one listener proves nothing", () => {
    const LEAF = "x-amzn-mtls-clientcert-leaf";
    const [single, multi] = [loadBalancer, loadBalancerMultiValue];
    const request = (certificate = right) => ({ path: PATH, body: review(), certificate });
    const code = async (event: ALBEvent, settings: Readonly<Record<string, string>> = {}) => {
      const given = { CLIENT_CERTIFICATE_FROM: "load-balancer", ...settings };
      return (await created("client-certificate", given)(event)).statusCode;
    };
    const leafOf = (event: ALBEvent) => event.headers?.[LEAF] ?? event.multiValueHeaders?.[LEAF]?.[0] ?? "";
    const withLeaf = (event: ALBEvent, ...leaves: readonly string[]): ALBEvent =>
      event.multiValueHeaders
        ? { ...event, multiValueHeaders: { ...event.multiValueHeaders, [LEAF]: [...leaves] } }
        : { ...event, headers: { ...event.headers, [LEAF]: leaves.join(",") } };

    test("but that one does, with a newline at its end and without", async () => {
      for (const certificate of [right, right.trimEnd(), `${right.trimEnd()}\n`]) {
        expect(await code(single(request(certificate)))).toBe(200);
        expect(await code(multi(request(certificate)))).toBe(200);
      }
    });

    test.each([single, multi])("twice, whoever is first", async (door) => {
      const [ours, theirs] = [leafOf(door(request())), leafOf(door(request(wrong)))];
      for (const leaves of [
        [ours, ours],
        [ours, theirs],
        [theirs, ours],
        [ours, ""],
        ["", ours],
      ])
        expect(await code(withLeaf(door(request()), ...leaves)), leaves.join().slice(0, 40)).toBe(401);
    });

    test.each([
      ["two PEM blocks", (ours: string, theirs: string) => `${ours}${theirs}`],
      ["two PEM blocks, a line each", (ours: string, theirs: string) => `${ours}%0A${theirs}`],
      ["two of the same", (ours: string) => `${ours}${ours}`],
      ["a comma between", (ours: string, theirs: string) => `${ours},${theirs}`],
      ["a comma and a blank", (ours: string, theirs: string) => `${ours}, ${theirs}`],
      ["a comma behind", (ours: string) => `${ours},`],
      ["a comma within", (ours: string, theirs: string) => `${ours}%2C${theirs}`],
      ["something in front", (ours: string) => `x${ours}`],
      ["a line in front", (ours: string) => `x%0A${ours}`],
      ["something behind", (ours: string) => `${ours}x`],
      ["a zero byte behind", (ours: string) => `${ours}%00`],
      ["a trusted block", (ours: string) => ours.replaceAll("CERTIFICATE", "TRUSTED%20CERTIFICATE")],
      ["no PEM", () => Buffer.from("x").toString("base64")],
    ])("%s", async (_, join) => {
      for (const door of [single, multi]) {
        const [ours, theirs] = [leafOf(door(request())), leafOf(door(request(wrong)))];
        // Also without the newline at its end, which once was all that kept a second block from being read.
        for (const first of [ours, ours.replace(/%0A$/, "")])
          expect(await code(withLeaf(door(request()), join(first, theirs)))).toBe(401);
      }
    });

    test("in both forms of headers, or in names of another case", async () => {
      const event = single(request());
      const { multiValueHeaders } = multi(request());
      expect(await code({ ...event, ...(multiValueHeaders ? { multiValueHeaders } : {}) })).toBe(401);
      const twice = { ...event.headers, "X-Amzn-Mtls-Clientcert-Leaf": leafOf(single(request(wrong))) };
      expect(await code({ ...event, headers: twice })).toBe(401);
    });

    test.each([
      ["of another target group", { requestContext: { elb: { targetGroupArn: `${TARGET_GROUP}2` } } }],
      ["of no load balancer", { requestContext: {} as ALBEvent["requestContext"] }],
    ])("%s", async (_, change) => {
      expect(await code({ ...single(request()), ...change })).toBe(401);
    });

    test.each([
      ["x-forwarded-port", "8443"],
      ["x-forwarded-port", "443, 443"],
      ["x-forwarded-port", ""],
      ["x-forwarded-proto", "http"],
    ])("of a listener whose %s is %j", async (name, value) => {
      expect(await code(single({ ...request(), headers: { [name]: value } }))).toBe(401);
      expect(await code(multi({ ...request(), headers: { [name]: value } }))).toBe(401);
    });

    test.each(["", TARGET_GROUP, `${TARGET_GROUP}:0`, "webhooks:443"])(
      "the listener %j is none: such a function does not start",
      (listener) => {
        const settings = { CLIENT_CERTIFICATE_FROM: "load-balancer", LOAD_BALANCER_LISTENER: listener };
        expect(() => created("client-certificate", settings)).toThrow(/LOAD_BALANCER_LISTENER/);
      },
    );
  });
});

/** A request whose event, as JSON, has about that many bytes. */
function ofSize(door: (request: DoorRequest) => Event, bytes: number): Event {
  const empty = JSON.stringify(door(inPath(review()))).length;
  const padded = JSON.stringify(door(inPath(review("x".repeat(bytes - empty))))).length;
  return door(inPath(review("x".repeat(bytes - empty - (padded - bytes)))));
}

describe("the limits of each door", () => {
  const MB = 1024 * 1024;

  test.each([
    ["functionUrl", 6 * MB],
    ["httpApi", 6 * MB],
    ["loadBalancer", MB],
    ["loadBalancerMultiValue", MB],
  ] as const)("%s: a request of %i bytes, the most that it carries, is answered", async (name, bytes) => {
    const event = ofSize(DOORS[name], bytes);
    expect(JSON.stringify(event).length).toBe(bytes);
    const result = await created("secret-path")(event);
    expect(responseOf(result)).toMatchObject({ uid: "u", allowed: true });
    expect(JSON.stringify(result).length).toBeLessThan(bytes);
  });

  test.each([
    ["functionUrl", 6 * MB],
    ["loadBalancer", MB],
  ] as const)("%s: an answer that it can't carry back is a failure that says so", async (name, bytes) => {
    // Each quote is escaped once more in the JSON that carries the answer.
    const objects = Array.from({ length: 10 }, () => sidecarSet('"'.repeat(bytes / 24)));
    const request = { uid: "u", desiredAPIVersion: "apps.kruise.io/v1alpha1", objects };
    const body = JSON.stringify({ apiVersion: "apiextensions.k8s.io/v1", kind: "ConversionReview", request });
    const result = await created("secret-path")(DOORS[name]({ path: registeredPath(secret, "/convert"), body }));
    expect(JSON.stringify(result).length).toBeLessThan(bytes);
    const { response } = JSON.parse(result.body ?? "") as ConversionReview;
    expect(response).toMatchObject({ uid: "u", convertedObjects: [], result: { status: "Failure" } });
    expect(response?.result.message).toMatch(/^the answer of \d+ bytes is larger than the front door/);
  });
});

test("a function that was not told whom to let in doesn't start", () => {
  expect(() => created("")).toThrow(/^AUTHENTICATION is not set/);
});
