/**
 * Two vendors that generate images and videos through a queue. Their routes submit, poll, fetch and cancel a job. A job completes after about a
 * second unless a lever moves it. Jobs survive a restart.
 */
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { film, fps, framesOf } from "./Film.ts"
import type { FilmSize } from "./Film.ts"
import * as FileStore from "./FileStore.ts"
import { json, parse, Refusal } from "./Outside.ts"
import { picture } from "./Picture.ts"
import type { Answer, JobMove, Make, Moved, Received } from "./Outside.ts"
import type { SteeredClock } from "./SteeredClock.ts"

/** The milliseconds until a job leaves the queue, and until it completes. */
const runsAfter = 300
const doneAfter = 1_000

interface SandboxJob {
  readonly id: string
  readonly endpoint: string
  readonly input: Readonly<Record<string, unknown>>
  readonly created_at: number
  /** The state that a lever or a cancellation has set. */
  moved?: "IN_PROGRESS" | "COMPLETED" | "FAILED" | "CANCELLED"
  /** The length of the video in seconds, if a lever set it. */
  duration?: number
}

interface Size {
  readonly width: number
  readonly height: number
}

const sizes: Readonly<Record<string, Size>> = {
  square_hd: { width: 1024, height: 1024 },
  square: { width: 512, height: 512 },
  portrait_4_3: { width: 768, height: 1024 },
  portrait_16_9: { width: 576, height: 1024 },
  landscape_4_3: { width: 1024, height: 768 },
  landscape_16_9: { width: 1024, height: 576 }
}

interface Queue {
  readonly service: "media" | "images"
  readonly origin: string
  readonly clock: SteeredClock
  readonly jobs: Map<string, SandboxJob>
  readonly save: () => void
}

const vendor =
  (service: Queue["service"], configuration: (origin: string) => Readonly<Record<string, unknown>>): Make =>
  ({ clock, data_dir, origin }) =>
    Effect.sync(() => {
      const queue = openQueue(service, origin, clock, data_dir)
      const mount = `/${service}-queue/{app*}`
      return {
        routes: [
          { method: "GET", path: `${mount}/requests/{id}/status`, answer: (received) => status(queue, received) },
          { method: "PUT", path: `${mount}/requests/{id}/cancel`, answer: (received) => cancel(queue, received) },
          { method: "GET", path: `${mount}/requests/{id}`, answer: (received) => result(queue, received) },
          { method: "POST", path: mount, answer: (received) => submit(queue, received) }
        ],
        move: (vendor_id, change) => move(queue, vendor_id, change),
        levers: [
          {
            method: "GET",
            path: `/files/${service}/{name}`,
            does: "Returns a file that a job generated",
            answer: ({ params }) => fileOf(queue.jobs, params["name"] ?? "")
          }
        ],
        configuration: configuration(origin)
      }
    })

const openQueue = (
  service: Queue["service"],
  origin: string,
  clock: SteeredClock,
  data_dir: string | undefined
): Queue => {
  const name = `sandbox-${service}.json`
  const stored = JSON.parse(FileStore.read(data_dir, name) ?? "[]") as ReadonlyArray<SandboxJob>
  const jobs = new Map(stored.map((job) => [job.id, job]))
  const save = () => FileStore.write(data_dir, name, JSON.stringify([...jobs.values()].slice(-jobsMax)))
  return { service, origin, clock, jobs, save }
}

const statusOf = ({ clock }: Queue, job: SandboxJob) => {
  if (job.moved !== undefined) return job.moved
  const age = clock.now() - job.created_at
  return age >= doneAfter ? "COMPLETED" : age >= runsAfter ? "IN_PROGRESS" : "IN_QUEUE"
}

const find = ({ jobs }: Queue, { headers, params }: Received): SandboxJob => {
  authorize(headers.authorization)
  const job = jobs.get(params["id"] ?? "")
  if (job === undefined || job.endpoint !== params["app"]) throw new Refusal(json(404, { detail: "Request not found" }))
  return job
}

const submit = ({ clock, jobs, origin, save, service }: Queue, { body, headers, params }: Received): Answer => {
  authorize(headers.authorization)
  const endpoint = params["app"] ?? ""
  const input = parse(body) as Readonly<Record<string, unknown>>
  // An image-to-video request can contain an image and no prompt.
  const needsPrompt = !endpoint.endsWith("image-to-video")
  if (needsPrompt && (typeof input["prompt"] !== "string" || input["prompt"] === "")) {
    return json(422, { detail: [{ loc: ["body", "prompt"], msg: "field required", type: "value_error.missing" }] })
  }
  const job: SandboxJob = { id: randomUUID(), endpoint, input, created_at: clock.now() }
  jobs.set(job.id, job)
  save()
  const address = `${origin}/${service}-queue/${endpoint}/requests/${job.id}`
  return json(200, {
    request_id: job.id,
    status: "IN_QUEUE",
    queue_position: 0,
    response_url: address,
    status_url: `${address}/status`,
    cancel_url: `${address}/cancel`
  })
}

const status = (queue: Queue, received: Received): Answer => {
  const job = find(queue, received)
  const status = statusOf(queue, job)
  if (status === "FAILED") {
    return json(200, { request_id: job.id, status: "COMPLETED", error: "the sandbox was configured to fail" })
  }
  return json(status === "COMPLETED" || status === "CANCELLED" ? 200 : 202, {
    request_id: job.id,
    status,
    ...(status === "IN_QUEUE" && { queue_position: 0 }),
    ...(status === "COMPLETED" && { metrics: { inference_time: doneAfter / 1_000 } })
  })
}

const result = (queue: Queue, received: Received): Answer => {
  const job = find(queue, received)
  const status = statusOf(queue, job)
  if (status === "FAILED") return json(422, { detail: "the sandbox was configured to fail" })
  if (status !== "COMPLETED") return json(400, { detail: "Request is still in progress" })
  const files = `${queue.origin}/files/${queue.service}`
  return json(200, job.endpoint.includes("video") ? videoOf(job, files) : imagesOf(job, files))
}

const cancel = (queue: Queue, received: Received): Answer => {
  const job = find(queue, received)
  const status = statusOf(queue, job)
  if (status === "COMPLETED" || status === "FAILED") return json(400, { status: "ALREADY_COMPLETED" })
  // Only a job that is still queued can be cancelled.
  if (status === "IN_QUEUE") {
    job.moved = "CANCELLED"
    queue.save()
  }
  return json(202, { status: "CANCELLATION_REQUESTED" })
}

const move = (queue: Queue, vendor_id: string, { duration, status }: JobMove): Moved | undefined => {
  const job = queue.jobs.get(vendor_id)
  if (job === undefined) return undefined
  const was = statusOf(queue, job)
  if (status !== undefined) job.moved = status
  if (duration !== undefined) job.duration = duration
  queue.save()
  return { status: statusOf(queue, job), was }
}

/** The maximum number of jobs saved across a restart. */
const jobsMax = 10_000

const authorize = (authorization: string | undefined): void => {
  if (!/^key +\S/i.test(authorization ?? "")) throw new Refusal(json(401, { detail: "Authentication is required" }))
}

const secondsOf = ({ duration, input }: SandboxJob): number => duration ?? Number(input["duration"] ?? 5)

const filmSizeOf = ({ input }: SandboxJob): FilmSize => (input["resolution"] === "720p" ? "1280x720" : "854x480")

const filmOf = (job: SandboxJob): Buffer => film(filmSizeOf(job), secondsOf(job))

const videoOf = (job: SandboxJob, files: string) => {
  const seconds = secondsOf(job)
  const [width, height] = filmSizeOf(job).split("x").map(Number)
  return {
    actual_prompt: null,
    duration: seconds,
    seed: Number(job.input["seed"] ?? 42),
    video: {
      content_type: "video/mp4",
      duration: seconds,
      file_name: `${job.id}.mp4`,
      file_size: filmOf(job).length,
      fps,
      height,
      num_frames: framesOf(seconds),
      url: `${files}/${job.id}.mp4`,
      width
    }
  }
}

const sizeOf = ({ image_size = "square_hd" }: SandboxJob["input"]): Size =>
  typeof image_size === "object" && image_size !== null
    ? (image_size as Size)
    : (sizes[String(image_size)] ?? { width: 1024, height: 1024 })

const imagesOf = (job: SandboxJob, files: string) => {
  const { height, width } = sizeOf(job.input)
  return {
    images: Array.from({ length: Number(job.input["num_images"] ?? 1) }, (_, i) => ({
      url: `${files}/${job.id}-${i}.png`,
      width,
      height,
      content_type: "image/png"
    })),
    seed: Number(job.input["seed"] ?? 42),
    prompt: job.input["prompt"]
  }
}

/** Returns a job's file: `{job}.mp4` or `{job}-{index}.png`. */
const fileOf = (jobs: ReadonlyMap<string, SandboxJob>, name: string): Answer => {
  if (name.endsWith(".mp4")) {
    const job = jobs.get(name.slice(0, -".mp4".length))
    if (job === undefined) return json(404, { detail: "File not found" })
    return { status: 200, headers: { "content-type": "video/mp4" }, body: filmOf(job) }
  }
  const [, id = "", index = ""] = /^(.*)-(\d+)\.png$/.exec(name) ?? []
  const input = jobs.get(id)?.input ?? {}
  const body = picture(`${String(input["prompt"])} ${String(input["seed"])} ${index}`, sizeOf(input))
  return { status: 200, headers: { "content-type": "image/png" }, body }
}

const tiers = [
  { tier: "480p", usd_per_second: "0.05", usd_per_second_with_audio: "0.075" },
  { tier: "720p", usd_per_second: "0.10", usd_per_second_with_audio: "0.15" }
]

export const media = vendor("media", (origin) => ({
  upstreams: { "sandbox-media": { base_url: `${origin}/media-queue`, api_key: "sandbox" } },
  media: [
    {
      type: "video",
      id: "sandbox-video",
      display_name: "Sandbox Video",
      upstream: "sandbox-media",
      endpoint: "sandbox/video",
      resolutions: tiers,
      duration: { min: 1, max: 10 },
      default_duration: 5,
      audio: "off",
      prompt_required: true
    },
    {
      type: "video",
      id: "sandbox-video-open",
      display_name: "Sandbox Video, of any length",
      upstream: "sandbox-media",
      endpoint: "sandbox/video-open",
      usd_per_second: "0.02",
      default_duration: 5,
      prompt_required: true
    },
    {
      type: "video",
      id: "sandbox-image-to-video",
      display_name: "Sandbox Image to Video",
      upstream: "sandbox-media",
      endpoint: "sandbox/image-to-video",
      resolutions: tiers,
      duration: { min: 1, max: 10 },
      default_duration: 5,
      audio: "off",
      from_image: true
    },
    {
      type: "image",
      id: "sandbox-image",
      display_name: "Sandbox Image",
      upstream: "sandbox-media",
      endpoint: "sandbox/image",
      usd_per_image: "0.04",
      default: true,
      prompt_required: true
    }
  ]
}))

export const images = vendor("images", (origin) => ({
  upstreams: { "sandbox-images": { base_url: `${origin}/images-queue`, api_key: "sandbox" } },
  tools: {
    images: [
      {
        id: "sandbox",
        name: "Sandbox",
        description: "Draws a small picture from the prompt",
        upstream: "sandbox-images",
        endpoint: "sandbox/flux",
        image_to_image_endpoint: "sandbox/flux/image-to-image",
        usd_per_image: "0.04",
        usd_per_image_by_pixels: { "1536x1024": "0.06", "1024x1536": "0.06" },
        output_formats: ["png"],
        edits: { endpoint: "sandbox/flux/edit", images_max: 4, mask: true },
        aliases: ["sandbox-image"]
      }
    ]
  }
}))
