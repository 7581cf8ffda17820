/** Reads the calls of an API server by user from its audit log. */
import { readFileSync } from "node:fs";

export interface AuditEvent {
  readonly verb: string;
  readonly requestURI: string;
  readonly userAgent?: string;
  readonly user: { readonly username: string };
  readonly objectRef?: {
    readonly resource: string;
    readonly apiGroup?: string;
    readonly namespace?: string;
    readonly name?: string;
    readonly subresource?: string;
  };
  readonly responseStatus?: { readonly code: number };
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Returns the events, oldest first. */
export function readAudit(auditLog: string): readonly AuditEvent[] {
  // The API server may still be writing the last line.
  const lines = readFileSync(auditLog, "utf8").split("\n").slice(0, -1).filter(Boolean);
  return lines.map((line) => JSON.parse(line) as AuditEvent);
}
