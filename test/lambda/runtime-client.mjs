/** A minimal form of Lambda's runtime client, for machines that cannot compile AWS' own: node runtime-client.mjs. */
import http from "node:http";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const agent = new http.Agent({ keepAlive: true });
const { AWS_LAMBDA_RUNTIME_API: api, LAMBDA_TASK_ROOT: root = ".", _HANDLER: name = "" } = process.env;
const [file, exported] = [name.slice(0, name.lastIndexOf(".")), name.slice(name.lastIndexOf(".") + 1)];

function call(method, path, body) {
  return new Promise((done, failed) => {
    const request = http.request(`http://${api}/2018-06-01/runtime/${path}`, { method, agent }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (part) => {
        text += part;
      });
      answer.on("end", () => done({ headers: answer.headers, text }));
    });
    request.on("error", failed).end(body);
  });
}

/** Returns an error as AWS' client logs it, as one line. */
function errorOf(error, requestId = "-") {
  const message = { errorType: error?.name, errorMessage: error?.message ?? String(error) };
  const line = { timestamp: new Date().toISOString(), level: "ERROR", requestId, message };
  process.stdout.write(`${JSON.stringify(line)}\n`);
  return JSON.stringify(message);
}

async function serve(handler) {
  const { headers, text } = await call("GET", "invocation/next");
  const id = headers["lambda-runtime-aws-request-id"];
  const deadline = Number(headers["lambda-runtime-deadline-ms"]);
  const context = { awsRequestId: id, getRemainingTimeInMillis: () => deadline - Date.now() };
  try {
    await call("POST", `invocation/${id}/response`, JSON.stringify(await handler(JSON.parse(text), context)));
  } catch (error) {
    await call("POST", `invocation/${id}/error`, errorOf(error, id));
  }
}

try {
  const handler = createRequire(resolve(root, "task.js"))(`./${file}.js`)[exported];
  for (;;) await serve(handler);
} catch (error) {
  await call("POST", "init/error", errorOf(error));
  process.exitCode = 1;
}
