/** Writes secrets into files in all forms that the product reads. */
import { randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createCertificates } from "../../infra/local/http/https-server.ts";

const WAYS = ["path", "token", "cluster-token", "in-cluster", "kubeconfig", "aws"] as const;

export interface Learned {
  readonly way: (typeof WAYS)[number];
  readonly secret: string;
  /** file or folder that contains the secret */
  readonly file: string;
  /** the authority's PEM in base64 */
  readonly authority: string;
}

function kubeconfig(token: string, authority: string): string {
  return JSON.stringify({
    "current-context": "x",
    contexts: [{ name: "x", context: { cluster: "x", user: "x" } }],
    clusters: [{ name: "x", cluster: { server: "https://127.0.0.1:1", "certificate-authority-data": authority } }],
    users: [{ name: "x", user: { token } }],
  });
}

/** Writes `count` secrets, and FOLDER/learned.json with their list. */
export async function writeCanaries(folder: string, count: number): Promise<readonly Learned[]> {
  const pem = (await createCertificates()).authority;
  const authority = Buffer.from(pem).toString("base64");
  const learned = Array.from({ length: count }, (_, index): Learned => {
    const way = WAYS[index % WAYS.length] ?? "path";
    const random = randomBytes(32);
    const secret = way === "aws" ? random.toString("base64") : random.toString("base64url");
    return { way, secret, authority, file: join(folder, `${index}`) };
  });
  for (const { way, secret, file } of learned) {
    if (way === "in-cluster") {
      await mkdir(file);
      await writeFile(join(file, "ca.crt"), pem);
      await writeFile(join(file, "token"), secret);
    } else await writeFile(file, way === "kubeconfig" ? kubeconfig(secret, authority) : secret);
  }
  await writeFile(join(folder, "learned.json"), JSON.stringify(learned));
  return learned;
}
