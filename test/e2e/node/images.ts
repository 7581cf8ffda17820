/** Serves images of BusyBox under any name, from a real registry on loopback that stands for all registries. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** The script of a program that ends at SIGTERM. */
const RUNS = "touch /tmp/ready; trap 'exit 143' TERM INT; while :; do sleep 1000 & wait $!; done";
/** The script of a container without a command, by a word in its image's name. */
const BEHAVIOURS: Readonly<Record<string, string>> = {
  completes: "exit 0",
  crashes: "exit 1",
  // The server of server/main.go.
  serves: "exec /bin/server",
};
/** The script of a postStart hook. The image's name selects its behaviour. */
const HOOK = `#!/bin/sh
case "$IMAGE" in
  *hook-fails*) exit 1 ;;
  *hook-never-ends*) sleep 100000 ;;
esac
`;
const MISSING = /does-not-exist/;
/** Repositories whose tags all name one image. */
const SAME = /same-image/;

const MANIFEST = "application/vnd.oci.image.manifest.v1+json";

const sha256 = (content: Buffer | string) => `sha256:${createHash("sha256").update(content).digest("hex")}`;

/** Builds a layer with BusyBox, a link for each of its commands, and the test's server. */
async function busyBoxLayer(folder: string, server: string): Promise<Buffer> {
  const root = join(folder, "root");
  for (const path of ["bin", "etc", "tmp", "var/run"]) mkdirSync(join(root, path), { recursive: true });
  await copyFile("/bin/busybox", join(root, "bin/busybox"));
  execFileSync(join(root, "bin/busybox"), ["--install", "-s", join(root, "bin")]);
  for (const command of execFileSync(join(root, "bin/busybox"), ["--list"], { encoding: "utf8" }).trim().split("\n"))
    if (command !== "busybox") execFileSync("ln", ["-sf", "busybox", join(root, "bin", command)]);
  writeFileSync(join(root, "etc/passwd"), "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n");
  await copyFile(server, join(root, "bin/server"));
  writeFileSync(join(root, "migrate.sh"), HOOK, { mode: 0o755 });
  const archive = join(folder, "layer.tar");
  const reproducible = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
  execFileSync("tar", ["-C", root, ...reproducible, "-cf", archive, "."]);
  return readFileSync(archive);
}

export interface Images {
  /** address of the registry for all images, `http://127.0.0.1:PORT` */
  readonly url: string;
  /** Delays every answer from now on, in ms; `Infinity`: no answer at all. */
  delay(ms: number): void;
  /** Removes the image of a tag for good. `name`: `REPOSITORY:TAG` without a host. */
  lose(name: string): Promise<void>;
  /** Makes a tag point to an image with another digest. */
  replace(name: string): Promise<void>;
  /** the tags whose manifests were requested, `REPOSITORY:TAG`, oldest first */
  readonly asked: readonly string[];
  close(): Promise<void>;
}

class Registry {
  readonly #url: string;
  readonly #layer: Buffer;
  readonly #pushed = new Map<string, Promise<void>>();

  constructor(url: string, layer: Buffer) {
    this.#url = url;
    this.#layer = layer;
  }

  async #blob(repository: string, content: Buffer | string): Promise<string> {
    const digest = sha256(content);
    const begun = await fetch(`${this.#url}/v2/${repository}/blobs/uploads/`, { method: "POST" });
    if (begun.status !== 202) throw new Error(`${repository}: ${begun.status} ${await begun.text()}`);
    const location = new URL(begun.headers.get("location") ?? "", this.#url);
    location.searchParams.set("digest", digest);
    const headers = { "content-type": "application/octet-stream" };
    const body = typeof content === "string" ? content : new Uint8Array(content);
    const ended = await fetch(location, { method: "PUT", body, headers });
    if (ended.status !== 201) throw new Error(`${repository}: ${ended.status} ${await ended.text()}`);
    return digest;
  }

  async #push(repository: string, tag: string, variant: string): Promise<void> {
    const name = `${repository}:${tag}`;
    const [, behaviour = RUNS] = Object.entries(BEHAVIOURS).find(([word]) => name.includes(word)) ?? [];
    const layer = await this.#blob(repository, this.#layer);
    const config = JSON.stringify({
      architecture: "amd64",
      os: "linux",
      // Each tag has its own digest. Only the tags of one repository share a digest.
      config: {
        Entrypoint: ["/bin/sh", "-c", behaviour],
        Env: ["PATH=/bin", `IMAGE=${SAME.test(name) ? repository : name}${variant}`],
      },
      rootfs: { type: "layers", diff_ids: [layer] },
    });
    const manifest = JSON.stringify({
      schemaVersion: 2,
      mediaType: MANIFEST,
      config: {
        mediaType: "application/vnd.oci.image.config.v1+json",
        digest: await this.#blob(repository, config),
        size: config.length,
      },
      layers: [{ mediaType: "application/vnd.oci.image.layer.v1.tar", digest: layer, size: this.#layer.length }],
    });
    const url = `${this.#url}/v2/${repository}/manifests/${tag}`;
    const answer = await fetch(url, { method: "PUT", body: manifest, headers: { "content-type": MANIFEST } });
    if (answer.status !== 201) throw new Error(`${name}: ${answer.status} ${await answer.text()}`);
  }

  /** Makes the image once for each name. */
  ensure(repository: string, tag: string): Promise<void> {
    const name = `${repository}:${tag}`;
    const pushed = this.#pushed.get(name) ?? this.#push(repository, tag, "");
    this.#pushed.set(name, pushed);
    return pushed;
  }

  replace(repository: string, tag: string): Promise<void> {
    const pushed = this.#push(repository, tag, `, again ${Date.now()}`);
    this.#pushed.set(`${repository}:${tag}`, pushed);
    return pushed;
  }

  async lose(repository: string, tag: string): Promise<void> {
    const url = `${this.#url}/v2/${repository}/manifests/`;
    const found = await fetch(`${url}${tag}`, { method: "HEAD", headers: { accept: MANIFEST } });
    const answer = await fetch(`${url}${found.headers.get("docker-content-digest")}`, { method: "DELETE" });
    if (answer.status !== 202) throw new Error(`${repository}:${tag}: ${answer.status} ${await answer.text()}`);
  }
}

function split(name: string): readonly [string, string] {
  const [, repository = "", tag = ""] = /^(.+):([^:]+)$/.exec(name) ?? [];
  return [repository, tag];
}

/** Starts a proxy before the registry at `url`. It makes images when they are pulled. */
export async function serveImages(url: string, folder: string, server: string): Promise<Images> {
  const registry = new Registry(url, await busyBoxLayer(folder, server));
  const asked: string[] = [];
  const lost = new Set<string>();
  let delayMs = 0;

  const prepare = async (repository: string, tag: string): Promise<void> => {
    const name = `${repository}:${tag}`;
    asked.push(name);
    if (!MISSING.test(name) && !lost.has(name)) await registry.ensure(repository, tag);
  };
  const pass = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const { method = "GET", headers } = incoming;
    const passed = request(new URL(incoming.url ?? "/", url), { method, headers }, (got) => {
      outgoing.writeHead(got.statusCode ?? 502, got.headers);
      got.pipe(outgoing);
    });
    passed.on("error", () => outgoing.destroy());
    incoming.pipe(passed);
  };
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    if (delayMs === Number.POSITIVE_INFINITY) return void outgoing.destroy();
    await sleep(delayMs);
    const [, repository = "", tag = ""] = /^\/v2\/(.+)\/manifests\/([^:?]+)(?:\?|$)/.exec(incoming.url ?? "") ?? [];
    if (tag !== "") await prepare(repository, tag);
    pass(incoming, outgoing);
  };
  const front = createServer((incoming, outgoing) => {
    answer(incoming, outgoing).catch((error: Error) => {
      outgoing.writeHead(500).end(error.message);
    });
  });
  await new Promise<void>((done) => front.listen(0, "127.0.0.1", done));
  return {
    url: `http://127.0.0.1:${(front.address() as AddressInfo).port}`,
    asked,
    delay: (ms) => {
      delayMs = ms;
    },
    lose: (name) => {
      lost.add(name);
      return registry.lose(...split(name));
    },
    replace: (name) => registry.replace(...split(name)),
    close: () =>
      new Promise((done) => {
        front.close(() => done());
        front.closeAllConnections();
      }),
  };
}
