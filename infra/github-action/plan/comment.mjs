/**
 * `comment.mjs FILE API_URL REPOSITORY NUMBER`, with a token on stdin: writes a file as the comment of this action on a
 * pull request. A second run changes the comment of the first.
 */
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";

const [file, apiUrl, repository, pullRequest] = process.argv.slice(2);
const token = await text(process.stdin);
/** GitHub shows no comment of HTML, and `plan` writes none. */
const MARK = "<!-- sidecarset plan -->";
const PER_PAGE = 100;

async function call(method, path, body) {
  const response = await fetch(`${apiUrl}/repos/${repository}/issues/${path}`, {
    method,
    headers: {
      accept: "application/vnd.github+json",
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "user-agent": "sidecarset-plan",
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (response.ok) return response.json();
  const advice = response.status === 403 ? "; give the job the permission pull-requests: write" : "";
  throw new Error(`GitHub answered ${response.status} to ${method} ${path}${advice}`);
}

async function ownComment(page = 1) {
  const comments = await call("GET", `${pullRequest}/comments?per_page=${PER_PAGE}&page=${page}`);
  const own = comments.find(({ body, user }) => body?.startsWith(MARK) && user?.type === "Bot");
  if (own !== undefined || comments.length < PER_PAGE) return own;
  return ownComment(page + 1);
}

try {
  const body = `${MARK}\n${await readFile(file, "utf8")}`;
  const own = await ownComment();
  if (own === undefined) await call("POST", `${pullRequest}/comments`, { body });
  else await call("PATCH", `comments/${own.id}`, { body });
} catch (error) {
  process.stdout.write(`::error::The plan could not be written as a comment: ${error.message}\n`);
  process.exitCode = 1;
}
