/** `tollgate people` beside a running service: a class is imported, again, and with mistakes. */
import { readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Csv from "../../src/app/commands/Csv.ts"
import { command, start } from "../support/Service.ts"
import type { Finished, Service } from "../support/Service.ts"

let service: Service
beforeAll(async () => {
  service = await start()
})
afterAll(() => service.discard())

const run = (...args: ReadonlyArray<string>): Promise<Finished> => command(args, { DATA_DIR: service.folder })
const people = (...args: ReadonlyArray<string>): Promise<Finished> => run("people", ...args)
const written = (name: string, text: string): string => {
  const path = join(service.folder, name)
  writeFileSync(path, text)
  return path
}
const count = async (): Promise<number> =>
  JSON.parse((await people("list", "--limit", "1000", "--json")).stdout).people.length

const students = Array.from({ length: 40 }, (_, n) => `student-${n}@example.com,"Student, ${n}"`)

describe("tollgate people", () => {
  it("imports 40 people with a key and an allowance each, once", async () => {
    const file = written("class.csv", `email,name\r\n${students.join("\r\n")}\r\n`)
    const keys = join(service.folder, "keys.csv")
    const options = ["--allowance", "20", "--period", "month", "--keys", keys, "--json"]
    const others = await count()
    const first = await people("import", file, ...options)
    expect([first.stderr, JSON.parse(first.stdout)]).toEqual(["", { people: 40, made: 40, keys: 40 }])
    expect(statSync(keys).mode & 0o777).toBe(0o600)
    const rows = Csv.parse(readFileSync(keys, "utf8"))
    if (typeof rows === "number") throw new Error("the file of keys is no CSV")
    expect(rows[0]!.cells).toEqual(["email", "name", "tenant_id", "api_key"])
    expect(rows.length).toBe(41)
    expect(rows[7]!.cells.slice(0, 2)).toEqual(["student-6@example.com", "Student, 6"])
    const token = rows[7]!.cells[3]!
    expect((await service.call("/v1/models", { token })).status).toBe(200)
    const before = readFileSync(keys, "utf8")
    const second = await people("import", file, ...options)
    expect(JSON.parse(second.stdout)).toEqual({ people: 40, made: 0, keys: 0 })
    expect(readFileSync(keys, "utf8")).toBe(before)
    expect(await count()).toBe(others + 40)
    const student = await service.signIn("student-6@example.com")
    expect(student.tenant_id).toBe(rows[7]!.cells[2])
    const { body } = await service.call(`/v1/tenants/${student.tenant_id}/billing/ledger?source=allowance`, {
      token: student.token
    })
    expect(body.result.records.map(({ amount }: { amount: number }) => amount)).toEqual([20])
    // The service has not seen this student's key, so it holds nothing of it in memory.
    expect((await people("suspend", "--email", "student-9@example.com")).code).toBe(0)
    expect((await service.call("/v1/models", { token: rows[10]!.cells[3]! })).status).toBe(401)
    const { people: listed } = JSON.parse((await people("list", "--limit", "1000", "--json")).stdout)
    expect(listed.filter(({ status }: { status: string }) => status === "suspended")).toEqual([
      expect.objectContaining({ email: "student-9@example.com" })
    ])
  })

  it.each([
    ["name\nx", "has no column email"],
    ["email,name,phone\na@example.com,A,1", 'line 1, column 3: "phone" is none of email, name'],
    ["email,name\nnew@example.com,New\nwrong,B", "line 3, column 1 (email): must be an email address"],
    ["name,email\nNew,new@example.com\n,b@example.com", "line 3, column 1 (name): must be a text"],
    ["email,name,allowance_usd\nnew@example.com,New,5\nb@example.com,B,-1", "line 3, column 3 (allowance_usd)"],
    ["email,name\nnew@example.com,New\nNEW@example.com,Again", "line 3, column 1 (email): it stands on line 2"],
    ["email,name\nnew@example.com,New\nb@example.com", "line 3: 1 columns instead of 2"],
    ['email,name\nnew@example.com,"New', "line 2: a quote is not closed"],
    ["email,name\n", "no person stands below"]
  ])("refuses %j whole, by line and column", async (text, words) => {
    const before = await count()
    const done = await people("import", written("wrong.csv", text))
    expect([done.code, done.stdout, done.stderr]).toEqual([1, "", expect.stringContaining(words)])
    expect(await count()).toBe(before)
  })

  it("makes a person by address or external id, and finds them again", async () => {
    const args = ["create", "--email", "Grace@example.com", "--external-id", "g-1", "--json"]
    const made = JSON.parse((await people(...args, "--name", "Grace")).stdout)
    expect(made).toMatchObject({ email: "grace@example.com", name: "Grace", created: true, external_id: "g-1" })
    expect(JSON.parse((await people(...args)).stdout)).toEqual({ ...made, created: false })
    const unknown = await people("suspend", "--email", "no-one@example.com")
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining("no person has this address")])
  })
})

describe("tollgate tenants create", () => {
  const shown = async (...args: ReadonlyArray<string>) => {
    const done = await run("tenants", "create", ...args, "--json")
    expect([done.code, done.stderr]).toEqual([0, ""])
    return JSON.parse(done.stdout)
  }

  it("makes a tenant with its owner, and by external id only one", async () => {
    const args = ["--name", "Physics", "--owner", "Meitner@example.com", "--external-id", "physics"]
    const made = await shown(...args, "--allowance", "5")
    expect(made).toMatchObject({
      created: true,
      external_id: "physics",
      name: "Physics",
      owner_email: "meitner@example.com",
      balance: "5"
    })
    expect(await shown(...args)).toEqual({ ...made, created: false })
    const other = await shown("--name", "Physics", "--owner", "meitner@example.com")
    expect([other.created, other.external_id, other.tenant_id === made.tenant_id]).toEqual([true, null, false])
    const listed = JSON.parse((await run("tenants", "--search", "physics", "--json")).stdout)
    expect(listed.tenants.map(({ id }: { id: string }) => id)).toEqual([other.tenant_id, made.tenant_id])
    const owner = await service.signIn("meitner@example.com")
    const { body } = await service.call(`/v1/tenants/${made.tenant_id}/members`, { token: owner.token })
    expect(body.result.members).toEqual([expect.objectContaining({ account_id: owner.account_id, role: "owner" })])
  })

  it("makes a key with limits, and prints it once", async () => {
    const { tenant_id } = await shown("--name", "Lab", "--owner", "lab@example.com")
    const limits = ["--limit", "20", "--period", "month", "--models", "sandbox-small", "--expires", "2099-01-31"]
    const done = await run("key", "create", "--tenant", tenant_id, "--name", "notebook", ...limits)
    expect([done.code, done.stdout]).toEqual([0, expect.stringMatching(/^svc-prod-[0-9a-f]{64}\n$/)])
    const list = await run("key", "list", "--tenant", tenant_id, "--json")
    expect(JSON.parse(list.stdout).keys).toEqual([
      expect.objectContaining({
        name: "notebook",
        spending_limit_usd: "20",
        spending_limit_period: "month",
        allowed_models: ["sandbox-small"],
        expires_at: expect.stringMatching(/^2099-01-31/)
      })
    ])
    expect(list.stdout).not.toContain(done.stdout.trim())
    expect((await service.call("/v1/models", { token: done.stdout.trim() })).status).toBe(200)
  })

  it.each([
    [["--name", "X", "--owner", "someone"], "--owner someone: an email address"],
    [["--name", "x".repeat(101), "--owner", "x@example.com"], "--name: up to 100 characters"],
    [["--name", "X", "--owner", "x@example.com", "--allowance", "-1"], "--allowance"]
  ])("refuses %o", async (args, words) => {
    const done = await run("tenants", "create", ...args)
    expect([done.code, done.stdout, done.stderr]).toEqual([1, "", expect.stringContaining(words)])
  })
})

it.each([
  ["=1+2", "'=1+2"],
  ["+49", "'+49"],
  ["@x", "'@x"],
  ['a"b', '"a""b"'],
  ["a,b", '"a,b"'],
  ["plain", "plain"]
])("a cell %j is written as %s", (text, cell) => expect(Csv.cell(text)).toBe(cell))
