import { createHash, createHmac } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type LocalCluster, startLocalCluster } from "../../infra/local/cluster.ts";
import type { AwsAccess } from "../../shared/aws/access.ts";
import { connectCluster } from "../../shared/kube/client.ts";
import { accessOf, connect } from "../../shared/kube/connect.ts";
import { eksToken } from "../../shared/kube/eks.ts";
import { inClusterAccess } from "../../shared/kube/in-cluster.ts";
import { NAMESPACES } from "../../shared/kube/port.ts";
import { renewableToken } from "../../shared/kube/token-access.ts";
import { withoutSecrets } from "../../shared/log.ts";
import { type ClusterSettings, parseCluster } from "../../shared/settings/cluster-settings.ts";

const credentials = {
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG",
  sessionToken: "session+/=",
};

let cluster: LocalCluster;
let folder: string;
beforeAll(async () => {
  cluster = await startLocalCluster();
  folder = await mkdtemp(join(tmpdir(), "cluster-access-"));
});
afterAll(async () => {
  await cluster.close();
  await rm(folder, { recursive: true });
});

/** Answers of a fake AWS, which checks every signature with its own arithmetic. */
const answers: (readonly [status: number, body: object | string])[] = [];
const services: (string | undefined)[] = [];
const asked: { readonly path: string; readonly target: string; readonly body: string }[] = [];
let aws: Server;
let access: () => AwsAccess;
beforeAll(async () => {
  aws = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const [status, answer] = isSigned(request, body)
      ? (answers.shift() ?? [500, {}])
      : [403, { __type: "InvalidSignature" }];
    services.push(/\/([a-z0-9]+)\/aws4_request,/.exec(request.headers.authorization ?? "")?.[1]);
    asked.push({ path: request.url ?? "", target: String(request.headers["x-amz-target"] ?? ""), body });
    response.writeHead(status).end(typeof answer === "string" ? answer : JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => aws.listen(0, "127.0.0.1", resolve));
  const endpoint = `http://127.0.0.1:${(aws.address() as AddressInfo).port}`;
  access = () => ({ credentials, endpoint });
});
afterAll(() => {
  aws.close();
});
beforeEach(() => {
  answers.length = 0;
  asked.length = 0;
  services.length = 0;
});

const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();
const hash = (text: string) => createHash("sha256").update(text).digest("hex");

/** Computes Signature Version 4 as AWS documents it. */
function signature(canonical: string, date: string, scope: string): string {
  const [day = "", region = "", service = ""] = scope.split("/");
  const key = hmac(hmac(hmac(hmac(`AWS4${credentials.secretAccessKey}`, day), region), service), "aws4_request");
  return hmac(key, ["AWS4-HMAC-SHA256", date, scope, hash(canonical)].join("\n")).toString("hex");
}

function isSigned({ method = "", url = "", headers }: IncomingMessage, body: string): boolean {
  const pattern = /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/([^,]+), SignedHeaders=([^,]+), Signature=(\w+)$/;
  const [, scope = "", signed = "", given] = pattern.exec(headers.authorization ?? "") ?? [];
  const lines = signed.split(";").map((name) => `${name}:${headers[name]}\n`);
  const canonical = [method, url, "", lines.join(""), signed, hash(body)].join("\n");
  return (
    signed.includes("x-amz-security-token") && given === signature(canonical, String(headers["x-amz-date"]), scope)
  );
}

const arn = "arn:aws:ssm:eu-central-1:123456789012:parameter/sidecarset/token";
const secretArn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:sidecarset/token-AbCdEf";
const address = () => ({ server: cluster.url, certificateAuthority: cluster.caCertificate });
const environment = (more: object) => ({
  CLUSTER_SERVER: cluster.url,
  CLUSTER_CA: Buffer.from(cluster.caCertificate).toString("base64"),
  ...more,
});
const readNamespace = async (settings: ClusterSettings) =>
  (await connectCluster(await accessOf(settings, access)).get(NAMESPACES, { name: "default" })).metadata?.name;

describe("accessOf:", () => {
  test("a token in a file gives access to the cluster", async () => {
    const path = join(folder, "token");
    await writeFile(path, `${cluster.token}\n`);
    expect(await readNamespace(parseCluster(environment({ CLUSTER_TOKEN: path })))).toBe("default");
  });

  test("a token that expires soon is logged as a warning at every level of the log", async () => {
    const path = join(folder, "ending");
    const part = (claims: object) => Buffer.from(JSON.stringify(claims)).toString("base64url");
    await writeFile(path, `a.${part({ iat: 0, exp: 1 })}.b\n`);
    const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
    try {
      await accessOf(parseCluster(environment({ CLUSTER_TOKEN: path })), access);
      const lines = write.mock.calls.map(([line]) => JSON.parse(String(line)));
      expect(lines).toMatchObject([{ level: "warn", accessEndsAt: "1970-01-01T00:00:01.000Z" }]);
    } finally {
      write.mockRestore();
    }
  });

  test("a token in an SSM parameter is read with decryption", async () => {
    answers.push([200, { Parameter: { Value: cluster.token } }]);
    expect(await readNamespace(parseCluster(environment({ CLUSTER_TOKEN: arn })))).toBe("default");
    const body = JSON.stringify({ Name: arn, WithDecryption: true });
    expect(asked).toEqual([{ path: "/", target: "AmazonSSM.GetParameter", body }]);
  });

  test("a token in Secrets Manager is read again while AWS throttles or fails", async () => {
    answers.push([500, "<html>"], [400, { __type: "ThrottlingException" }], [200, { SecretString: cluster.token }]);
    expect(await readNamespace(parseCluster(environment({ CLUSTER_TOKEN: secretArn })))).toBe("default");
    expect(asked.map(({ target }) => target)).toEqual(Array(3).fill("secretsmanager.GetSecretValue"));
  });

  test("a pod's service account gives access to the cluster", async () => {
    await writeFile(join(folder, "ca.crt"), cluster.caCertificate);
    await writeFile(join(folder, "token"), cluster.token);
    const inCluster = connectCluster(await inClusterAccess(cluster.url, folder));
    expect((await inCluster.get(NAMESPACES, { name: "default" })).metadata?.name).toBe("default");
  });

  test("accessOf asks EKS once for the API server's address and certificate authority", async () => {
    const data = Buffer.from(cluster.caCertificate).toString("base64");
    answers.push([200, { cluster: { endpoint: cluster.url, certificateAuthority: { data } } }]);
    const settings = parseCluster({ EKS_CLUSTER: "arn:aws:eks:eu-central-1:123456789012:cluster/prod" });
    const { token, renewToken, ...where } = await accessOf(settings, access);
    expect(where).toEqual(address());
    expect(await token?.()).toMatch(/^k8s-aws-v1\.[A-Za-z0-9_-]+$/);
    expect(asked).toEqual([{ path: "/clusters/prod", target: "", body: "" }]);
    expect(services).toEqual(["eks"]);
    expect(renewToken).toBeTypeOf("function");
  });

  test("a call fails when another certificate authority signed the API server's certificate", async () => {
    const other = await startLocalCluster();
    const settings = { kind: "token", token: { kind: "file", path: join(folder, "token") }, ...address() } as const;
    await expect(readNamespace({ ...settings, server: other.url })).rejects.toThrow(/certificate/);
    await other.close();
  });
});

describe("eksToken:", () => {
  test("eksToken is a presigned STS GetCallerIdentity URL for one cluster, valid for 60 seconds", async () => {
    const token = await eksToken({ kind: "eks", name: "prod", region: "eu-west-1" }, credentials);
    const url = new URL(Buffer.from(token.replace(/^k8s-aws-v1\./, ""), "base64url").toString());
    expect([url.protocol, url.host, url.pathname]).toEqual(["https:", "sts.eu-west-1.amazonaws.com", "/"]);
    const { "X-Amz-Signature": given, ...query } = Object.fromEntries(url.searchParams);
    expect(query).toMatchObject({
      Action: "GetCallerIdentity",
      Version: "2011-06-15",
      "X-Amz-Expires": "60",
      "X-Amz-SignedHeaders": "host;x-k8s-aws-id",
      "X-Amz-Security-Token": credentials.sessionToken,
    });
    const encoded = Object.entries(query)
      .map((pair) => pair.map(encodeURIComponent).join("="))
      .toSorted()
      .join("&");
    const [, scope = ""] = /^AKIDEXAMPLE\/(.*)$/.exec(query["X-Amz-Credential"] ?? "") ?? [];
    const lines = "host:sts.eu-west-1.amazonaws.com\nx-k8s-aws-id:prod\n";
    const canonical = ["GET", "/", encoded, lines, "host;x-k8s-aws-id", hash("")].join("\n");
    expect(given).toBe(signature(canonical, query["X-Amz-Date"] ?? "", scope));
  });

  test("eksToken uses the STS address of China for a region in China", async () => {
    const token = await eksToken({ kind: "eks", name: "prod", region: "cn-north-1" }, credentials);
    expect(Buffer.from(token.slice(11), "base64url").toString()).toContain("https://sts.cn-north-1.amazonaws.com.cn/?");
  });
});

describe("renewableToken:", () => {
  test("a token is read once for all callers when it is too old, and the old token stays in use when that fails", async () => {
    let [clock, reads] = [0, 0];
    let isDown = false;
    const read = async () => {
      reads++;
      if (isDown) throw new Error("down");
      return `token-${reads}`;
    };
    const { token } = renewableToken({ read, freshnessMs: 1000, now: () => clock });
    expect(await Promise.all([token(), token(), token()])).toEqual(["token-1", "token-1", "token-1"]);
    clock = 999;
    expect(await token()).toBe("token-1");
    clock = 1000;
    expect(await token()).toBe("token-2");
    [clock, isDown] = [2000, true];
    expect(await token()).toBe("token-2");
    expect(reads).toBe(3);
  });

  test("a token is read again when the clock was set back", async () => {
    let [clock, reads] = [5_000, 0];
    const { token } = renewableToken({ read: async () => `token-${++reads}`, freshnessMs: 1000, now: () => clock });
    expect(await token()).toBe("token-1");
    clock = 4_999;
    expect(await token()).toBe("token-2");
    clock = 5_500;
    expect(await token()).toBe("token-2");
  });

  test("a refused token is read again once, stays in use when the read fails, and is hidden in texts", async () => {
    const read = [async () => " first-of-two\n", async () => "second-of-two", () => Promise.reject(new Error("down"))];
    const next = () => read.shift()?.() ?? Promise.reject(new Error("no more"));
    const { token, renewToken } = renewableToken({ read: next, freshnessMs: 1000, now: () => 0 });
    expect(await token()).toBe("first-of-two");
    expect(await renewToken("first-of-two")).toBe(true);
    expect(await renewToken("first-of-two")).toBe(true);
    expect(read).toHaveLength(1);
    expect(await renewToken("second-of-two")).toBe(false);
    expect(await token()).toBe("second-of-two");
    expect(withoutSecrets("first-of-two, second-of-two")).toBe("[not shown], [not shown]");
  });

  test("a first token that cannot be read is read again at the next call", async () => {
    let isDown = true;
    const read = async () => {
      if (isDown) throw new Error("down");
      return "token";
    };
    const { token, renewToken } = renewableToken({ read, freshnessMs: 1000, now: () => 0 });
    await expect(token()).rejects.toThrow("down");
    expect(await renewToken(undefined)).toBe(false);
    isDown = false;
    expect(await token()).toBe("token");
  });

  test("a write whose token is refused is sent once more with the new token", async () => {
    const path = join(folder, "rotated");
    await writeFile(path, "of-yesterday");
    const settings = parseCluster(environment({ CLUSTER_TOKEN: path }));
    const client = connectCluster(await accessOf(settings, access));
    await writeFile(path, cluster.token);
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "made-once" } };
    expect((await client.create(NAMESPACES, namespace)).metadata?.name).toBe("made-once");
  });

  test("a call fails when the new token is refused too, or equals the old one", async () => {
    const requests: number[] = [];
    let [reads, isSame] = [0, false];
    const read = async () => (isSame ? "same" : `wrong-${++reads}`);
    const refused = async () => {
      const tokens = renewableToken({ read, freshnessMs: 60_000, now: Date.now });
      const sent: (string | undefined)[] = [];
      const token = async () => {
        sent.push(await tokens.token());
        return sent.at(-1);
      };
      const client = connectCluster({ ...address(), ...tokens, token, onRequest: ({ code }) => requests.push(code) });
      await expect(client.get(NAMESPACES, { name: "default" })).rejects.toMatchObject({ code: 401 });
      return sent;
    };
    expect(await refused()).toEqual(["wrong-1", "wrong-2"]);
    isSame = true;
    expect(await refused()).toEqual(["same"]);
    expect(requests).toEqual([401, 401]);
  });

  test("a kubeconfig is read again when its token is refused", async () => {
    const path = join(folder, "kubeconfig");
    await writeFile(path, cluster.kubeconfig().replace(cluster.token, "of-yesterday"));
    const client = await connect({ kind: "kubeconfig", path });
    await writeFile(path, cluster.kubeconfig());
    expect((await client.get(NAMESPACES, { name: "default" })).metadata?.name).toBe("default");
  });
});

describe("errors of the cluster settings:", () => {
  const rows: readonly (readonly [string, object, string])[] = [
    ["two kinds of access at once", { KUBECONFIG: "/a", EKS_CLUSTER: "b" }, "KUBECONFIG and EKS_CLUSTER are both set"],
    ["a token in plain text", { CLUSTER_TOKEN: "eyJhbGciOi" }, "CLUSTER_TOKEN names no place of a secret"],
    ["a token without a server", { CLUSTER_TOKEN: "/token" }, "CLUSTER_TOKEN needs CLUSTER_SERVER and CLUSTER_CA"],
    ["a server without its certificate authority", { CLUSTER_TOKEN: "/t", CLUSTER_SERVER: "https://a" }, "go together"],
    [
      "a server with plain HTTP",
      { CLUSTER_TOKEN: "/t", CLUSTER_SERVER: "http://a", CLUSTER_CA: "/ca" },
      "CLUSTER_SERVER=http://a is not",
    ],
    [
      "a certificate authority that is not a certificate",
      { CLUSTER_TOKEN: "/t", CLUSTER_SERVER: "https://a", CLUSTER_CA: "aGVsbG8=" },
      "CLUSTER_CA is not",
    ],
    [
      "a certificate authority whose file does not exist",
      { CLUSTER_TOKEN: "/t", CLUSTER_SERVER: "https://a", CLUSTER_CA: "/none" },
      "ENOENT",
    ],
    ["an EKS cluster without a region", { EKS_CLUSTER: "prod" }, "EKS_CLUSTER=prod names no region"],
    [
      "an ARN that is not an EKS cluster's",
      { EKS_CLUSTER: "arn:aws:s3:::b", AWS_REGION: "x" },
      "neither the name nor the ARN",
    ],
  ];
  test.each(rows)("parseCluster refuses %s and shows no secret", (_, env, sentence) => {
    expect(() => parseCluster(env as Record<string, string>)).toThrow(sentence);
    expect(() => parseCluster(env as Record<string, string>)).not.toThrow("eyJ");
  });

  test("the error names the service and the code when AWS denies access, without its message", async () => {
    answers.push([400, { __type: "com.amazonaws#AccessDeniedException", message: "leaked" }]);
    const reading = readNamespace(parseCluster(environment({ CLUSTER_TOKEN: arn })));
    await expect(reading).rejects.toThrow(
      new RegExp(`^${arn} cannot be read: ssm in eu-central-1 answered 400 AccessDeniedException$`),
    );
  });

  test("the error says that AWS's answer is unreadable or has no text", async () => {
    answers.push([200, "[]<"]);
    await expect(readNamespace(parseCluster(environment({ CLUSTER_TOKEN: arn })))).rejects.toThrow(
      /ssm in .* answered 200$/,
    );
    answers.push([200, { Parameter: {} }]);
    await expect(readNamespace(parseCluster(environment({ CLUSTER_TOKEN: arn })))).rejects.toThrow(/it has no text$/);
  });

  test("the error asks for a service account when its files do not exist", async () => {
    const error = await inClusterAccess("https://a", "/none").catch((thrown) => thrown);
    expect(error).toMatchObject({ code: 0, reason: "NoCredentials", isOutcomeKnown: true, cause: { code: "ENOENT" } });
    expect(error.message).toMatch(/^\/none\/ca\.crt cannot be read \(ENOENT\): give the pod a service account/);
  });

  test("the error says that an EKS cluster has no endpoint yet while it is being created", async () => {
    const settings = parseCluster({ EKS_CLUSTER: "prod", AWS_REGION: "eu-central-1" });
    for (const answer of [{}, { cluster: { status: "CREATING" } }, { cluster: { endpoint: "https://a" } }]) {
      answers.push([200, answer]);
      const error = await accessOf(settings, access).catch((thrown) => thrown);
      expect(error).toMatchObject({ code: 0, reason: "NoCredentials", isOutcomeKnown: true });
      expect(error.message).toMatch(/prod in eu-central-1 has no endpoint yet/);
    }
  });
});

test("without settings parseCluster uses a pod's service account (also with IPv6), or else ~/.kube/config", () => {
  expect(parseCluster({})).toEqual({ kind: "kubeconfig" });
  const kubernetes = { KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "443" };
  expect(parseCluster(kubernetes)).toEqual({ kind: "in-cluster", server: "https://[fd00::1]:443" });
  expect(parseCluster({ ...kubernetes, KUBECONFIG: "/a" })).toEqual({ kind: "kubeconfig", path: "/a" });
});
