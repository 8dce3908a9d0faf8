// Runs coding agents from the registry against the service in sandbox mode. Each agent gets one prompt that makes the model call a tool. Checks that
// the tool ran, that the agent reports its result, that the usage records and the ledger contain its calls, and that `tollgate verify` succeeds. Run
// it with `npm run agents`. If the registry is unreachable, it prints a notice and succeeds. The README describes the agents.
import { spawn, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { command, root, start } from "../../test/support/Service.ts"
import type { Person, Service } from "../../test/support/Service.ts"
import { agents } from "./agents.ts"
import type { Agent } from "./agents.ts"
import { install } from "./install.ts"

/** The prompt timeout in milliseconds. */
const promptTimeout = 180_000

const model = "sandbox-large"
/** A model whose second upstream accepts only chat, so that requests in other protocols are translated. */
const translated = "sandbox-failover"
const file = "made.txt"
/**
 * The command that prints the result, which no prompt contains. The command waits a second after printing, because Qwen Code sometimes loses the
 * output of a command that exits at once.
 */
const work = `echo "the sum is $((19+23))" | tee ${file}; sleep 1`
const result = "the sum is 42"

/** The sandbox's models call the tool that a prompt names if the request offers that tool. Each agent offers one of these tools. */
const prompt = [
  "Run a command and report its output.",
  `call exec_command ${JSON.stringify({ cmd: work })}`,
  `call shell_command ${JSON.stringify({ command: work })}`,
  `call shell ${JSON.stringify({ command: ["bash", "-c", work] })}`,
  `call Bash ${JSON.stringify({ command: work, description: "Adds" })}`,
  `call run_shell_command ${JSON.stringify({ command: work, is_background: false })}`
].join("\n")

const print = (text: string): void => void process.stdout.write(`${text}\n`)

const expect = (holds: boolean, what: string): void => {
  if (!holds) throw new Error(what)
}

/** Runs an agent and returns its standard output. Rejects if it fails or times out. */
const run = (agent: Agent, setting: Parameters<Agent["command"]>[0]): Promise<string> =>
  new Promise((resolve, reject) => {
    const { args, env } = agent.command(setting)
    const { PATH } = process.env
    const [program, ...rest] = args
    const child = spawn(program, rest, {
      cwd: setting.folder,
      env: { PATH, HOME: setting.home, TMPDIR: setting.home, TERM: "dumb", CI: "1", NO_COLOR: "1", ...env },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: promptTimeout,
      killSignal: "SIGKILL"
    })
    let stdout = ""
    let stderr = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text))
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text))
    child.once("error", reject)
    child.once("close", (code) => {
      if (code === 0) resolve(stdout)
      else reject(new Error(`it exited with ${code ?? "a signal"}: ${`${stdout}\n${stderr}`.trim().slice(-2_000)}`))
    })
  })

/** Returns the number and the cost of a person's calls. Checks that all of them succeeded at the agent's endpoint and match the ledger's debits. */
const booksOf = async (service: Service, person: Person, { endpoint }: Agent) => {
  const records = await service.usage(person)
  const taken = (await service.ledger(person)).filter(({ type }: { readonly type: string }) => type === "debit")
  const others = records.filter((record) => record.endpoint !== endpoint || !record.success)
  expect(others.length === 0, `usage contains unexpected calls: ${JSON.stringify(others)}`)
  const sum = (of: ReadonlyArray<number>) => Number(of.reduce((total, amount) => total + amount, 0).toFixed(9))
  const cost = sum(records.map((record) => record.cost as number))
  expect(records.length === taken.length, `${records.length} calls, but ${taken.length} ledger entries`)
  expect(
    cost === sum(taken.map(({ amount }) => amount as number)),
    "the ledger's debits differ from the cost of the calls"
  )
  return { calls: records.length, cost }
}

const checkAgent = async (agent: Agent, installed: string, service: Service, model: string): Promise<string> => {
  const person = await service.signIn(`${agent.package.replaceAll(/\W/g, "-")}.${model}@example.com`)
  const key = await service.key(person)
  const scratch = mkdtempSync(join(tmpdir(), "tollgate-agent-"))
  try {
    const [home, folder] = ["home", "work"].map((name) => join(scratch, name)) as [string, string]
    for (const made of [home, folder]) mkdirSync(made)
    const said = await run(agent, { installed, home, folder, url: service.url, key, model, prompt })
    const made = join(folder, file)
    expect(existsSync(made), `the tool did not run; the agent printed: ${said.slice(-2_000)}`)
    expect(readFileSync(made, "utf8").trim() === result, `the tool wrote ${readFileSync(made, "utf8")}`)
    expect(said.includes(result), `the answer does not contain the tool's result: ${said.slice(-2_000)}`)
    const { calls, cost } = await booksOf(service, person, agent)
    expect(calls >= 2, `${calls} calls; expected one that requests the tool and one after it`)
    return `${calls} calls of ${agent.endpoint} for ${cost} USD; the tool ran, and the agent reported the result`
  } finally {
    rmSync(scratch, { recursive: true, force: true, maxRetries: 5 })
  }
}

const main = async (): Promise<void> => {
  const folders = new Map<Agent, string>()
  for (const agent of agents) {
    const folder = join(root, ".agents", `${agent.package.replaceAll("/", "-")}@${agent.version}`)
    const why = await install(folder, agent)
    if (why === undefined) folders.set(agent, folder)
    else print(`${agent.name} ${agent.version}: skipped, because the registry could not provide it: ${why}`)
  }
  if (folders.size === 0) return print("No agent could be installed, so nothing was tested.")
  if (!process.argv.includes("--no-build"))
    spawnSync("npm", ["run", "--silent", "build"], { cwd: root, stdio: ["ignore", 2, 2] })
  const service = await start()
  try {
    const say = async (what: string, agent: Agent, folder: string, model: string) => {
      const outcome = await checkAgent(agent, folder, service, model).catch((error: unknown) => {
        process.exitCode = 1
        return `FAILED: ${error instanceof Error ? error.message : String(error)}`
      })
      print(`${agent.name} ${agent.version}${what}: ${outcome}`)
    }
    for (const [agent, folder] of folders) await say("", agent, folder, model)
    // Make every protocol but chat fail, so that calls to the other model fail over to its second upstream, which accepts only chat.
    const others = [...folders].filter(([{ endpoint }]) => endpoint !== "chat/completions")
    for (const vendor of ["messages", "responses"])
      await service.control("/faults", { service: vendor, status: 500, times: 1_000 })
    for (const [agent, folder] of others) await say(", translated to chat", agent, folder, translated)
    await service.end()
    const { code, stdout } = await command(["verify"], { DATA_DIR: service.folder })
    print(`verify: ${stdout.trim().split("\n").at(-1)}`)
    if (code !== 0) process.exitCode = 1
  } finally {
    await service.discard()
  }
}

await main()
