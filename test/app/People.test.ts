/** `tollgate people` beside a running service: a class is imported, again, and with mistakes. */
import { readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import * as Csv from "../../src/app/commands/Csv.ts"
import { cell } from "../../src/kernel/CsvCell.ts"
import { lettersTo } from "../support/mail.ts"
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
    expect([first.stderr, JSON.parse(first.stdout)]).toEqual([
      "",
      { people: 40, made: 40, teams: 0, keys: 40, letters: 0 }
    ])
    expect(statSync(keys).mode & 0o777).toBe(0o600)
    const rows = Csv.parse(readFileSync(keys, "utf8"))
    if (Csv.isMalformed(rows)) throw new Error("the file of keys is no CSV")
    expect(rows[0]!.cells).toEqual(["email", "name", "tenant_id", "api_key"])
    expect(rows.length).toBe(41)
    expect(rows[7]!.cells.slice(0, 2)).toEqual(["student-6@example.com", "Student, 6"])
    const token = rows[7]!.cells[3]!
    expect((await service.call("/v1/models", { token })).status).toBe(200)
    const before = readFileSync(keys, "utf8")
    const second = await people("import", file, ...options)
    expect(JSON.parse(second.stdout)).toEqual({ people: 40, made: 0, teams: 0, keys: 0, letters: 0 })
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
    ["name\nx", "the column email is missing from the first line"],
    ["email,name,phone\na@example.com,A,1", 'line 1, column 3: "phone" is not one of email, name'],
    ["email,name,team\nnew@example.com,New,Physics", "--owner: required for new teams (Physics)"],
    [`email,name,team\nnew@example.com,New,${"x".repeat(101)}`, "line 2, column 3 (team): must be 1 to 100"],
    ["email,name\nnew@example.com,New\nwrong,B", "line 3, column 1 (email): must be an email address"],
    ["name,email\nNew,new@example.com\n,b@example.com", "line 3, column 1 (name): must be 1 to 100"],
    ["email,name,allowance_usd\nnew@example.com,New,5\nb@example.com,B,-1", "line 3, column 3 (allowance_usd)"],
    [
      "email,name\nnew@example.com,New\nNEW@example.com,Again",
      "line 3, column 1 (email): this value is already on line 2"
    ],
    ["email,name\nnew@example.com,New\nb@example.com", "line 3: 1 cells instead of 2"],
    ['email,name\nnew@example.com,"New', "line 2, column 2: the closing quote is missing"],
    ['email,name\nnew@example.com,"Ann "Ada" B"', "line 2, column 2: the closing quote is followed by more text"],
    ["email;name\nnew@example.com;New\nwrong;B", "line 3, column 1 (email): must be an email address"],
    ["email,name\n", "must list at least one person"]
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

describe("the file of an import", () => {
  const cellsOf = (text: string) => {
    const rows = Csv.parse(text)
    if (Csv.isMalformed(rows)) throw new Error(rows.fault)
    return rows.map(({ cells }) => cells)
  }

  it.each([
    ["semicolons", '\uFEFFemail;name\r\na@example.com;"Smith; ""Ann"", B"\r\n', 'Smith; "Ann", B'],
    ["tabs", "email\tname\na@example.com\tSmith, Ann; B", "Smith, Ann; B"],
    ["commas", 'email,name\na@example.com, Smith; "Ann"', 'Smith; "Ann"']
  ])("has columns between %s", (_, text, name) => {
    expect(cellsOf(text)).toEqual([
      ["email", "name"],
      ["a@example.com", name]
    ])
  })

  it("has one column where the head has one", () => {
    expect(cellsOf("email\na@example.com")).toEqual([["email"], ["a@example.com"]])
  })
})

describe("teams and letters of an import", () => {
  const mailing = () =>
    written(
      "mailing.json",
      JSON.stringify({
        public_url: service.url,
        mail: { host: "mail.example.com", from: "service@example.com" }
      })
    )

  it("puts people into teams that it makes, with allowances of their own, once", async () => {
    const rows = ["t1@example.com,T1,Chemistry,5", "t2@example.com,T2,Chemistry,", "t3@example.com,T3,,"]
    const file = written("teams.csv", `email,name,team,allowance_usd\n${rows.join("\n")}\n`)
    const options = ["--owner", "teacher@example.com", "--allowance", "20", "--json"]
    const first = await people("import", file, ...options)
    expect([first.stderr, JSON.parse(first.stdout)]).toEqual([
      "",
      { people: 3, made: 3, teams: 1, keys: 0, letters: 0 }
    ])
    expect(JSON.parse((await people("import", file, ...options)).stdout)).toMatchObject({ made: 0, teams: 0 })
    const teacher = await service.signIn("teacher@example.com")
    const { memberships } = (await service.call("/v1/me/memberships", { token: teacher.token })).body.result
    const team = memberships.find(({ tenant_name }: { tenant_name: string }) => tenant_name === "Chemistry")
    const { body } = await service.call(`/v1/tenants/${team.tenant_id}/members`, { token: teacher.token })
    const roles = body.result.members.map(({ email, role }: { email: string; role: string }) => `${email} ${role}`)
    expect(roles.toSorted()).toEqual(["t1@example.com member", "t2@example.com member", "teacher@example.com owner"])
    const [t1, t3] = [await service.signIn("t1@example.com"), await service.signIn("t3@example.com")]
    expect([await service.balance(t1), await service.balance(t3)]).toEqual([5, 20])
  })

  it("sends each new person one letter, whose link opens the console once as that person", async () => {
    const file = written("letters.csv", "email,name\nl1@example.com,Lise\nl2@example.com,Otto\n")
    const options = ["--letters", "--config", mailing(), "--json"]
    const first = await people("import", file, ...options)
    expect([first.stderr, JSON.parse(first.stdout)]).toEqual([
      "",
      { people: 2, made: 2, teams: 0, keys: 0, letters: 2 }
    ])
    expect(JSON.parse((await people("import", file, ...options)).stdout)).toMatchObject({ made: 0, letters: 0 })
    // An invitation over HTTP wakes the outbox, which would look for the command's letters within a minute.
    const token = (await run("operator", "--token")).stdout.trim()
    const invited = await service.call("/v1/operator/invites", { token, json: { email: "l3@example.com" } })
    expect(invited.body.result).toMatchObject({ email: "l3@example.com", tenant_id: null, created: true })
    for (const email of ["l1@example.com", "l2@example.com", "l3@example.com"]) {
      const [letter, ...more] = await vi.waitFor(async () => {
        const letters = await lettersTo(service, email)
        expect(letters).toHaveLength(1)
        return letters
      }, 20_000)
      expect([more, letter!.text]).toEqual([[], expect.not.stringContaining("svc-prod-")])
      const [, code] = /\/console\/#link=([0-9a-f]{64})/.exec(letter!.text)!
      const headers = { origin: service.url }
      const opened = await service.call("/console/session", { json: { code }, headers })
      const person = (await service.call("/v1/me", { token: opened.body.result.access_token })).body.result.account
      expect(person.email).toBe(email)
      expect((await service.call("/console/session", { json: { code }, headers })).status).toBe(401)
    }
  })

  it("invites by command: to the service, and to a tenant in its owner's name", async () => {
    const made = await run("tenants", "create", "--name", "Alloys", "--owner", "owner@example.com")
    const tenant = made.stdout.trim()
    const invite = (...args: ReadonlyArray<string>) => run("invite", "--config", mailing(), ...args)
    const joined = await invite("--email", "smith@example.com", "--tenant", tenant, "--role", "admin", "--json")
    expect(JSON.parse(joined.stdout)).toMatchObject({ email: "smith@example.com", tenant_id: tenant })
    const owner = await service.signIn("owner@example.com")
    const { body } = await service.call(`/v1/tenants/${tenant}/invites`, { token: owner.token })
    expect(body.result.invites).toEqual([
      expect.objectContaining({ email: "smith@example.com", role: "admin", invited_by: owner.account_id })
    ])
    const own = JSON.parse((await invite("--email", "new@example.org", "--name", "New", "--json")).stdout)
    expect(own).toMatchObject({ email: "new@example.org", tenant_id: null, created: true })
    const unknown = await invite("--email", "x@example.com", "--tenant", "ten_none")
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining("there is no such tenant")])
    const silent = await run(
      "invite",
      "--config",
      written("silent.json", JSON.stringify({ service_name: "Silent" })),
      "--email",
      "x@example.com"
    )
    expect([silent.code, silent.stderr]).toEqual([1, expect.stringContaining('does not set "mail"')])
    const alone = await invite("--email", "x@example.com", "--role", "admin")
    expect([alone.code, alone.stderr]).toEqual([1, expect.stringContaining("--role: requires --tenant")])
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
    limits.push("--tag", "team=lab", "--tag", "eq=a=b")
    const done = await run("key", "create", "--tenant", tenant_id, "--name", "notebook", ...limits)
    expect([done.code, done.stdout]).toEqual([0, expect.stringMatching(/^svc-prod-[0-9a-f]{64}\n$/)])
    expect(done.stderr).toContain("the models' names were not checked; to check them, pass --config FILE\n")
    const list = await run("key", "list", "--tenant", tenant_id, "--json")
    expect(JSON.parse(list.stdout).keys).toEqual([
      expect.objectContaining({
        name: "notebook",
        spending_limit_usd: "20",
        spending_limit_period: "month",
        allowed_models: ["sandbox-small"],
        expires_at: "2099-02-01T00:00:00.000Z",
        tags: { eq: "a=b", team: "lab" }
      })
    ])
    expect((await run("key", "list", "--tenant", tenant_id)).stdout).toMatch(/ TAGS .*\n.* eq=a=b,team=lab /)
    expect(list.stdout).not.toContain(done.stdout.trim())
    expect((await service.call("/v1/models", { token: done.stdout.trim() })).status).toBe(200)
  })

  it("refuses a key's limits in the words of the options, and makes no key", async () => {
    const { tenant_id } = await shown("--name", "Lab of mistakes", "--owner", "lab@example.com")
    const refused = async (...args: ReadonlyArray<string>) => {
      const { code, stderr, stdout } = await run("key", "create", "--tenant", tenant_id, "--name", "wrong", ...args)
      expect([code, stdout]).toEqual([1, ""])
      return stderr
    }
    expect(await refused("--period", "month")).toContain("--period month: requires --limit")
    expect(await refused("--limit", "much")).toContain("--limit much: must be a decimal number above 0")
    expect(await refused("--tag", "lab")).toBe("tollgate: --tag lab: must be name=value\n")
    expect(await refused("--tag", "a=1", "--tag", "a=2")).toBe("tollgate: --tag a=2: the tag a already has a value\n")
    expect(await refused("--tag", "a b=1")).toContain("--tag: must contain only tags with a name of 1 to 64 letters")
    expect(await refused("--expires", "soon")).toContain("--expires soon: must be a day (2027-01-31")
    expect(await refused("--limit", "1", "--expires", "2020-01-31")).toBe(
      "tollgate: --expires: must be in the future\n"
    )
    expect(JSON.parse((await run("key", "list", "--tenant", tenant_id, "--json")).stdout).keys).toEqual([])
  })

  it.each([
    [["--name", "X", "--owner", "someone"], "--owner someone: must be an email address"],
    [["--name", "x".repeat(101), "--owner", "x@example.com"], "--name: must be at most 100 characters"],
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
])("a cell %j is written as %s", (text, written) => expect(cell(text)).toBe(written))
