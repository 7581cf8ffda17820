/** Watch streams as API servers send them, with all the ways in which they end. */
import type http from "node:http";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import type { ApiServer } from "../api-server.ts";
import type { Chance } from "../chance.ts";
import { type Arrival, placeOf } from "./door.ts";
import { sendParts } from "./send-parts.ts";

export const WATCH_ENDS = ["ends", "breaks in an event", "expires", "is no JSON", "is refused as expired"] as const;
type WatchEnd = (typeof WATCH_ENDS)[number];

export interface WatchFate {
  readonly end: WatchEnd;
  /** the events that were sent completely */
  readonly sent: KubernetesObject[];
}

interface WatchDoorOptions {
  readonly server: ApiServer;
  readonly chance: Chance;
}

const BREAKS_AFTER_MS = 5;
const GONE = {
  kind: "Status",
  status: "Failure",
  code: 410,
  reason: "Expired",
  message: "too old resource version: 1 (2)",
};

export class WatchDoor {
  readonly #options: WatchDoorOptions;

  constructor(options: WatchDoorOptions) {
    this.#options = options;
  }

  /** Sends all events since the request's version, and then ends the stream. */
  async serve(arrival: Arrival, response: http.ServerResponse): Promise<void> {
    const { chance, server } = this.#options;
    const end = chance.pick(WATCH_ENDS);
    const sent: KubernetesObject[] = [];
    arrival.watch = { end, sent };
    if (end === "is refused as expired") {
      response.writeHead(410, { "Content-Type": "application/json" }).end(JSON.stringify(GONE));
      return;
    }
    response.writeHead(200, { "Content-Type": "application/json" });
    const { resource, key } = placeOf(arrival.path);
    const options = {
      resourceVersion: "0",
      ...arrival.query,
      timeoutSeconds: Number(arrival.query["timeoutSeconds"]),
      ...(key.namespace === undefined ? {} : { namespace: key.namespace }),
    };
    const lines: string[] = [];
    const session = server.watch("client", resource, options, {
      event: (event) => {
        if (event.type === "ERROR") return;
        const line = JSON.stringify(event);
        sent.push(JSON.parse(line));
        lines.push(`${line}\n${chance.isLucky(0.1) ? "\n" : ""}`);
      },
      end: () => undefined,
    });
    // Past events are sent one by one.
    await new Promise((resolve) => setImmediate(resolve));
    session.close();
    await sendParts(response, Buffer.from(lines.join("") + tailOf(end)), chance);
    if (end !== "breaks in an event") response.end();
    // The delay lets written bytes leave before the connection breaks.
    else setTimeout(() => response.socket?.destroy(), BREAKS_AFTER_MS);
  }
}

function tailOf(end: WatchEnd): string {
  if (end === "expires") return `${JSON.stringify({ type: "ERROR", object: GONE })}\n`;
  if (end === "is no JSON") return "<html>\n";
  return end === "breaks in an event" ? '{"type":"MODIFIED","object":{"metadata":' : "";
}
