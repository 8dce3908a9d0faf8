/** Generates sample programs. They use the deployment's URL and read the key from the environment. */
import { apiRoot } from "../../app/Base.ts"
import type { ChatBody } from "./chatCall.ts"

const keyName = "API_KEY"

const json = (value: unknown, indent = 2): string => JSON.stringify(value, null, indent)

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

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

const indented = (spaces: number, text: string): string => text.replaceAll("\n", `\n${" ".repeat(spaces)}`)

/** Formats a value as a TypeScript literal with unquoted property names. */
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
  body: JSON.stringify(${indented(2, script(body))})
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
  curl: `# Submit the job. The response contains the quote and the request_id.
curl ${apiRoot}/v1/tools/media/generate \\
  -H "Authorization: Bearer $${keyName}" \\
  -H "Content-Type: application/json" \\
  -d ${quoted(json(body))}

# Poll until the status is COMPLETED, then fetch the result.
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
  body: JSON.stringify(${indented(2, script(body))})
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

const curlFields = (fields: Readonly<Record<string, string>>): string =>
  Object.entries(fields)
    .map(([name, value]) => ` \\\n  -F ${quoted(`${name}=${value}`)}`)
    .join("")

export const speechCode = (body: object) => ({
  curl: `curl ${apiRoot}/v1/tools/speech \\
  -H "Authorization: Bearer $${keyName}" \\
  -H "Content-Type: application/json" \\
  -d ${quoted(json(body))} \\
  --output speech.${formatOf(body)}`,
  fetch: `import { writeFile } from "node:fs/promises"

const response = await fetch("${apiRoot}/v1/tools/speech", {
  method: "POST",
  headers: {
    authorization: \`Bearer \${process.env.${keyName}}\`,
    "content-type": "application/json"
  },
  body: JSON.stringify(${indented(2, script(body))})
})
if (!response.ok) throw new Error(await response.text())
await writeFile("speech.${formatOf(body)}", Buffer.from(await response.arrayBuffer()))
console.log("charged", response.headers.get("x-charge-usd"), "USD")`,
  python: `import os
import requests

answer = requests.post(
    "${apiRoot}/v1/tools/speech",
    headers={"Authorization": f"Bearer {os.environ['${keyName}']}"},
    json=${python(body, 1)},
)
answer.raise_for_status()
with open("speech.${formatOf(body)}", "wb") as file:
    file.write(answer.content)
print("charged", answer.headers["x-charge-usd"], "USD")`
})

const formatOf = (body: object): string => ("response_format" in body ? String(body.response_format) : "mp3")

export const transcriptionCode = (file: string, fields: Readonly<Record<string, string>>) => ({
  curl: `curl ${apiRoot}/v1/transcriptions \\
  -H "Authorization: Bearer $${keyName}"${curlFields(fields)} \\
  -F ${quoted(`file=@${file}`)}`,
  fetch: `import { openAsBlob } from "node:fs"

const form = new FormData()
${Object.entries(fields)
  .map(([name, value]) => `form.append(${json(name)}, ${json(value)})\n`)
  .join("")}form.append("file", await openAsBlob(${json(file)}), ${json(file)})
const response = await fetch("${apiRoot}/v1/transcriptions", {
  method: "POST",
  headers: { authorization: \`Bearer \${process.env.${keyName}}\` },
  body: form
})
if (!response.ok) throw new Error(await response.text())
console.log((await response.json()).text)
console.log("charged", response.headers.get("x-charge-usd"), "USD")`,
  python: `import os
import requests

with open(${json(file)}, "rb") as file:
    answer = requests.post(
        "${apiRoot}/v1/transcriptions",
        headers={"Authorization": f"Bearer {os.environ['${keyName}']}"},
        data=${python(fields, 2)},
        files={"file": file},
    )
answer.raise_for_status()
print(answer.json()["text"])
print("charged", answer.headers["x-charge-usd"], "USD")`
})

export const searchCode = (fields: Readonly<Record<string, string>>) => ({
  curl: `curl -G ${apiRoot}/v1/search \\
  -H "Authorization: Bearer $${keyName}"${Object.entries(fields)
    .map(([name, value]) => ` \\\n  --data-urlencode ${quoted(`${name}=${value}`)}`)
    .join("")}`,
  fetch: `const query = new URLSearchParams(${script(fields)})
const response = await fetch(\`${apiRoot}/v1/search?\${query}\`, {
  headers: { authorization: \`Bearer \${process.env.${keyName}}\` }
})
if (!response.ok) throw new Error(await response.text())
for (const { title, url } of (await response.json()).results) console.log(title, url)
console.log("charged", response.headers.get("x-charge-usd"), "USD")`,
  python: `import os
import requests

answer = requests.get(
    "${apiRoot}/v1/search",
    headers={"Authorization": f"Bearer {os.environ['${keyName}']}"},
    params=${python(fields, 1)},
)
answer.raise_for_status()
for result in answer.json()["results"]:
    print(result["title"], result["url"])
print("charged", answer.headers["x-charge-usd"], "USD")`
})
