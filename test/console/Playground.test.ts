/** The playground in a real browser: a call to its explanation, one that is stopped, media to its end, and refusals. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Desk, screens } from "./Browser.ts"
import type { Tab } from "./Browser.ts"

let desk: Desk

beforeAll(async () => {
  desk = await Desk.open()
})
afterAll(() => desk.close())

const ask = async ({ page }: Tab, message: string): Promise<void> => {
  await page.getByLabel("Message", { exact: true }).fill(message)
  await page.keyboard.press("Control+Enter")
}

const choose = ({ page }: Tab, model: string): Promise<unknown> =>
  page.getByLabel("Model", { exact: true }).selectOption(model)

describe("on a phone", () => {
  it("answers, says what it cost, and explains it", async () => {
    const tab = await desk.signIn("pia", "playground", screens.phone)
    const { page } = tab
    await choose(tab, "sandbox-small")
    // What else is set is folded, and says how much of it there is.
    const settings = page.locator("summary").filter({ hasText: "Settings" })
    const tokens = page.getByLabel("Max tokens")
    expect(await tokens.isVisible()).toBe(false)
    await settings.focus()
    await page.keyboard.press("Enter")
    await tokens.fill("100")
    expect(await tab.axe()).toEqual([])
    await settings.press("Enter")
    await tokens.waitFor({ state: "hidden" })
    await page.getByText("Settings, 1 set", { exact: true }).waitFor()
    await ask(tab, "one two three")
    const answer = page.locator(".playground-answer").first()
    await answer.getByText("one two three").waitFor()
    await answer.getByText("$0.00000225").first().waitFor({ state: "attached" })
    expect(await page.getByText("Answer: one two three").textContent()).toContain("Charged $0.00000225")
    expect(await tab.axe()).toEqual([])
    expect(await tab.cramped()).toEqual([])

    await answer.getByRole("button", { name: "Cost breakdown" }).click()
    await page.getByRole("dialog").getByText("Charged", { exact: true }).waitFor()
    await page.keyboard.press("Escape")
    await page.getByRole("dialog").waitFor({ state: "detached" })

    // What was said before is part of the next call: 3 + 3 + 1 words.
    await ask(tab, "four")
    await page.locator(".playground-answer").nth(1).getByText("7 + 1").waitFor()
    const program = await page.getByRole("tabpanel").textContent()
    expect(program).toContain(`${desk.service.url}/v1/chat/completions`)
    expect(program).toContain("$API_KEY")
    tab.done()
  })
})

describe("a chat", () => {
  it("is stopped, and says what was charged for what came", async () => {
    const tab = await desk.signIn("stella", "playground")
    // Asked for until it is there: what had begun to come is read on, and charged then.
    tab.allowed.push(/404 .*\/explain$/)
    const { page } = tab
    await choose(tab, "sandbox-small")
    await desk.service.control("/faults", { service: "chat", chunk_delay_ms: 250, times: 1 })
    await ask(tab, "word ".repeat(200))
    const answer = page.locator(".playground-answer").first()
    await answer.getByText("Estimate").waitFor()
    await answer.getByText("word", { exact: false }).nth(0).waitFor()
    await page.keyboard.press("Escape")
    await answer.getByText("Stopped", { exact: true }).waitFor()
    await answer.getByRole("button", { name: "Cost breakdown" }).click()
    const dialog = page.getByRole("dialog")
    await dialog.getByText("Charged", { exact: true }).waitFor()
    // The prompt, and less than the whole answer.
    const [prompt, completion] = (await desk.service.usage(await desk.service.signIn("stella@example.com"))).map(
      ({ completion_tokens, prompt_tokens }) => [prompt_tokens, completion_tokens]
    )[0]!
    expect(prompt).toBeGreaterThan(0)
    expect(completion).toBeLessThan(200)
    tab.done()
  })

  it("that nobody can pay says what is missing and where to get it", async () => {
    const tab = await desk.signIn("otto", "playground")
    tab.allowed.push(/402/)
    const { page } = tab
    await choose(tab, "sandbox-large")
    await page.getByLabel("Max tokens").fill("4096")
    // Another call has reserved nearly all of the balance meanwhile.
    const { token } = await desk.service.signIn("otto@example.com")
    await desk.service.control("/faults", { service: "chat", delay_ms: 60_000, times: 1 })
    const json = { model: "sandbox-large", n: 97, max_tokens: 4096, messages: [{ role: "user", content: "hi" }] }
    void desk.service.call("/v1/chat/completions", { token, json }).catch(() => undefined)
    await expect.poll(async () => (await desk.service.control("/calls?service=chat&limit=1"))[0]?.body.n).toBe(97)
    await ask(tab, "hello")
    const refusal = page.getByRole("alert")
    await refusal.getByText("Not enough credit for this call").waitFor()
    await refusal.getByText("Missing").waitFor()
    await refusal.getByText(/^req_/).waitFor()
    expect(await refusal.getByRole("link", { name: "Add credit" }).getAttribute("href")).toContain("/console/credit")
    expect(await tab.axe()).toEqual([])
    tab.done()
  })

  it("whose model fails says so, and is sent again", async () => {
    const tab = await desk.signIn("ute", "playground")
    tab.allowed.push(/500/)
    const { page } = tab
    await choose(tab, "sandbox-small")
    await desk.service.control("/faults", { service: "chat", status: 500, times: 1 })
    await ask(tab, "hello there")
    await page.getByRole("alert").getByText("The model did not respond").waitFor()
    await page.getByRole("button", { name: "Send again" }).click()
    await page.locator(".playground-answer").nth(1).getByText("hello there").waitFor()
    tab.done()
  })
})

describe("a tool", () => {
  it("speaks, writes down and searches, each with its charge and its explanation", async () => {
    const tab = await desk.signIn("tom", "playground?make=speech")
    const { page } = tab
    const explained = async (charge: string): Promise<void> => {
      await page.getByRole("button", { name: "Cost breakdown" }).click()
      await page.getByRole("dialog").getByText(charge, { exact: true }).first().waitFor({ state: "attached" })
      await page.keyboard.press("Escape")
      await page.getByRole("dialog").waitFor({ state: "detached" })
    }
    await page.getByLabel("Text", { exact: true }).fill("The tide is in.")
    await page.getByLabel("Format").selectOption("wav")
    await page.getByRole("button", { name: "Speak" }).click()
    // 15 characters at 15 USD a million.
    await page.locator('.playground-run .money[data-tip="$0.000225"]').waitFor()
    await page.waitForFunction(() => (document.querySelector("audio")?.duration ?? 0) > 0.5)
    expect(await page.getByRole("link", { name: "Download" }).getAttribute("download")).toBe("speech.wav")
    expect(await tab.axe()).toEqual([])
    await explained("$0.000225")

    await page.getByText("Transcription", { exact: true }).click()
    const recording = { name: "interview.mp3", mimeType: "audio/mpeg", buffer: Buffer.alloc(32_000) }
    await page.locator("input[type=file]").setInputFiles(recording)
    await page.getByRole("button", { name: "Transcribe" }).click()
    await page.getByText("2 seconds of interview.mp3").waitFor()
    // Two seconds at 0.006 USD a minute.
    await explained("$0.0002")

    await page.getByText("Search", { exact: true }).first().click()
    await page.getByLabel("Query").fill("toll bridges")
    await page.getByLabel("Query").press("Enter")
    await page.getByRole("link", { name: "toll bridges (1)" }).waitFor()
    expect(await tab.axe()).toEqual([])
    await explained("$0.005")
    await page.getByLabel("Max results").fill("1000")
    tab.allowed.push(/status of 400/)
    await page.getByRole("button", { name: "Search", exact: true }).click()
    await page.getByText("must be a whole number from 1 to 100", { exact: true }).waitFor()

    // What was asked for outlives the view, not a press on Clear.
    await page.getByText("Speech", { exact: true }).click()
    await page.getByText("The tide is in.").first().waitFor()
    await page.getByRole("button", { name: "Clear" }).click()
    await page.getByText("No speech yet").waitFor()
    tab.done()
  })
})

describe("media", () => {
  it("is quoted, made and charged; what failed is given back", async () => {
    const tab = await desk.signIn("mia", "playground?make=media")
    const { page } = tab
    await page.getByLabel("Prompt").fill("a lighthouse at dusk")
    await page.getByLabel("Number of images").fill("2")
    await page.locator(".playground-quote").getByText("$0.08").first().waitFor({ state: "attached" })
    await page.getByRole("button", { name: "Generate" }).click()
    const job = page.locator(".playground-job").first()
    await job.getByText("Done", { exact: true }).waitFor()
    await job.getByText("Charged").waitFor()
    // Through the service: the page loads nothing from elsewhere, and what is saved is what is seen.
    await job.locator("img").nth(1).waitFor()
    const saved = await job
      .getByRole("link", { name: "Download" })
      .evaluateAll((links) => links.map((link) => (link as HTMLAnchorElement).href))
    expect(saved).toEqual([expect.stringMatching(/^blob:/), expect.stringMatching(/^blob:/)])
    expect(
      await job
        .locator("img")
        .first()
        .evaluate((image) => (image as HTMLImageElement).naturalWidth)
    ).toBe(1024)
    expect(await tab.axe()).toEqual([])

    await page.getByLabel("Model", { exact: true }).selectOption("sandbox-video")
    await page.getByLabel("Resolution").fill("9999p")
    await page.getByRole("button", { name: "Generate" }).click()
    tab.allowed.push(/400/)
    await page.getByText("one of 480p, 720p").first().waitFor()
    // As a person types: a field takes its refusal back when it is left.
    const resolution = page.getByLabel("Resolution")
    await resolution.fill("")
    await resolution.pressSequentially("720p")
    await resolution.press("Tab")
    await page.getByRole("button", { name: "Generate" }).click()
    await job.getByText("Sandbox Video", { exact: true }).waitFor()
    const { records } = (
      await desk.service.call("/v1/tools/media/jobs", { token: (await desk.service.signIn("mia@example.com")).token })
    ).body
    await desk.service.control("/media", { request_id: records[0].request_id, status: "FAILED" })
    await job.getByText("Failed", { exact: true }).waitFor()
    await job.getByText("Released").waitFor()
    await job.getByText("$0.50").first().waitFor({ state: "attached" })

    // A film comes when it is asked for, and is played here.
    await resolution.fill("")
    await page.getByLabel("Seconds").fill("2")
    await page.getByRole("button", { name: "Generate" }).click()
    await job.getByText("Done", { exact: true }).waitFor()
    await job.getByText("854 × 480 · 2 sec").waitFor()
    await job.getByRole("button", { name: "Show" }).click()
    const video = job.locator("video")
    await video.evaluate((film) => (film as HTMLVideoElement).play())
    await video.evaluate((film) => new Promise((ended) => film.addEventListener("ended", ended)))
    expect(
      await video.evaluate((film) => {
        const { duration, videoHeight, videoWidth } = film as HTMLVideoElement
        return [videoWidth, videoHeight, duration]
      })
    ).toEqual([854, 480, 2])
    expect(await tab.axe()).toEqual([])
    tab.done()
  })
})
