/** Where the API server finds the webhooks. */
import { secretPath } from "../../shared/webhook/paths.ts";

export interface WebhookAddress {
  /** https, without a path: https://webhooks.example.com */
  readonly url: string;
  /** PEM in base64; absent: a certificate authority that the API server trusts anyway */
  readonly caBundle?: string;
  /** 43 characters that prove who asks; absent: a client certificate or a token does */
  readonly pathSecret?: string;
  /** Where conversions are asked for; absent: the same address. API servers present no certificate or token there. */
  readonly conversion?: Omit<WebhookAddress, "conversion">;
}

export function clientConfig({ url, caBundle, pathSecret }: Omit<WebhookAddress, "conversion">, path: string) {
  const fullPath = pathSecret === undefined ? path : secretPath(pathSecret, path);
  return { url: url.replace(/\/+$/, "") + fullPath, ...(caBundle === undefined ? {} : { caBundle }) };
}
