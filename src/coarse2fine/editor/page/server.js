// What the page asks of the server it came from; nothing goes anywhere else.

const GONE = "The editor no longer runs. Your changes are still on this page.";

/** Ask for something: {status, ...what was answered}, status 0 where nobody answered. */
async function ask(method, name, body) {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  try {
    const answer = await fetch(name, { method, headers, body, cache: "no-store" });
    return { status: answer.status, ...(await answer.json()) };
  } catch {
    return { status: 0, error: GONE };
  }
}

export const load = () => ask("GET", "hierarchy");

/** Save a hierarchy in place of the file with the given digest. */
export const store = (hierarchy, replaces) =>
  ask("PUT", "hierarchy", JSON.stringify({ hierarchy, replaces }));

export const quit = () => ask("POST", "quit", "{}");
