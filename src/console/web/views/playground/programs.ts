/** Calls as programs: with the deployment's address, and the key out of the environment. */
import { apiRoot } from "../../app/Base.ts"
import type { ChatBody } from "./chatCall.ts"

const keyName = "API_KEY"

const json = (value: unknown, indent = 2): string => JSON.stringify(value, null, indent)

/** A text between a shell's single quotes. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** JSON as Python writes it. */
const python = (value: unknown, depth: number): string => {
  const inner = "    ".repeat(depth + 1)
  const outer = "    ".repeat(depth)
  if (Array.isArray(value)) return `[\n${value.map((one) => `${inner}${python(one, depth + 1)},\n`).join("")}${outer}]`
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).map(([name, one]) => `${inner}${json(name)}: ${python(one, depth + 1)},\n`)
    return `{\n${entries.join("")}${outer}}`
  }
  if (value === true) return "True"
  return value === false ? "False" : JSON.stringify(value)
}

const behind = (spaces: number, text: string): string => text.replaceAll("\n", `\n${" ".repeat(spaces)}`)

/** A literal object of TypeScript: names without quotes. */
const script = (value: unknown): string => json(value).replaceAll(/^(\s*)"([a-z_]+)":/gm, "$1$2:")

export const chatCode = (body: ChatBody) => {
  const streamed = { ...body, stream: true }
  return {
    curl: `curl -N ${apiRoot}/v1/chat/completions \\
  -H "Authorization: Bearer $${keyName}" \\
  -H "Content-Type: application/json" \\
  -d ${quoted(json(streamed))}`,
    openai: `import OpenAI from "openai"

const client = new OpenAI({ baseURL: "${apiRoot}/v1", apiKey: process.env.${keyName} })
const stream = await client.chat.completions.create(${script(streamed)})
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? "")
}`,
    fetch: `const response = await fetch("${apiRoot}/v1/chat/completions", {
  method: "POST",
  headers: {
    authorization: \`Bearer \${process.env.${keyName}}\`,
    "content-type": "application/json"
  },
  body: JSON.stringify(${behind(2, script(body))})
})
const answer = await response.json()
console.log(answer.choices[0].message.content)
console.log("charged", response.headers.get("x-charge-usd"), "USD")`,
    python: `import os
from openai import OpenAI

client = OpenAI(base_url="${apiRoot}/v1", api_key=os.environ["${keyName}"])
stream = client.chat.completions.create(
${Object.entries(streamed)
  .map(([name, value]) => `    ${name}=${python(value, 1)},\n`)
  .join("")})
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)`
  }
}

export const mediaCode = (body: Readonly<Record<string, unknown>>) => ({
  curl: `# Submit; the answer has the quote and the request_id.
curl ${apiRoot}/v1/tools/media/generate \\
  -H "Authorization: Bearer $${keyName}" \\
  -H "Content-Type: application/json" \\
  -d ${quoted(json(body))}

# Ask until it is COMPLETED, then fetch what was made.
curl "${apiRoot}/v1/tools/media/status?request_id=$REQUEST_ID" -H "Authorization: Bearer $${keyName}"
curl "${apiRoot}/v1/tools/media/result?request_id=$REQUEST_ID" -H "Authorization: Bearer $${keyName}"`,
  fetch: `const headers = {
  authorization: \`Bearer \${process.env.${keyName}}\`,
  "content-type": "application/json"
}
const media = async (path: string, init = {}) => {
  const response = await fetch("${apiRoot}/v1/tools/media/" + path, { headers, ...init })
  if (!response.ok) throw new Error(await response.text())
  return response.json()
}

const job = await media("generate", {
  method: "POST",
  body: JSON.stringify(${behind(2, script(body))})
})
console.log("quote", job.cost_usd, "USD")
let status = job.status
while (status === "IN_QUEUE" || status === "IN_PROGRESS") {
  await new Promise((resolve) => setTimeout(resolve, 2000))
  status = (await media("status?request_id=" + job.request_id)).status
}
console.log((await media("result?request_id=" + job.request_id)).output)`,
  python: `import os, time
import requests

base = "${apiRoot}/v1/tools/media/"
session = requests.Session()
session.headers["Authorization"] = f"Bearer {os.environ['${keyName}']}"

answer = session.post(base + "generate", json=${python(body, 0)})
answer.raise_for_status()
job = answer.json()
print("quote", job["cost_usd"], "USD")
which = {"request_id": job["request_id"]}
while session.get(base + "status", params=which).json()["status"] in ("IN_QUEUE", "IN_PROGRESS"):
    time.sleep(2)
print(session.get(base + "result", params=which).json()["output"])`
})
