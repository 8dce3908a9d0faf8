/** Transcribes an audio file. */
import { FileAudio, FileUp } from "lucide-react"
import { useState } from "react"
import { count, duration, fileSize } from "../../moments.ts"
import { Copy } from "../../parts/Copy.tsx"
import { TextField } from "../../parts/Fields.tsx"
import type { Schemas } from "../../app/Client.ts"
import { playgroundTexts } from "../../texts/playground.ts"
import { Fact } from "./Fact.tsx"
import { Program } from "./Program.tsx"
import { transcriptionCode } from "./programs.ts"
import { filledIn, transcriptionRuns } from "./tools.ts"
import type { TranscriptionInput } from "./tools.ts"
import { toolModel, ToolModelField } from "./ToolModel.tsx"
import { ToolOf } from "./ToolOf.tsx"

const words = playgroundTexts.transcription

interface FileFieldProps {
  readonly file: File | undefined
  readonly onChoose: (file: File) => void
}

const FileField = ({ file, onChoose }: FileFieldProps) => {
  const [isOver, setOver] = useState(false)
  return (
    <label
      className="playground-file"
      data-over={isOver || undefined}
      onDragOver={(event) => {
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault()
        setOver(false)
        const dropped = event.dataTransfer.files[0]
        if (dropped !== undefined) onChoose(dropped)
      }}
    >
      <FileUp size={20} strokeWidth={1.5} aria-hidden />
      <span className="playground-file-name">{file === undefined ? words.choose : file.name}</span>
      <span className="quiet small">{file === undefined ? words.chooseHelp : fileSize(file.size)}</span>
      <input
        type="file"
        accept="audio/*,video/mp4,video/webm,.mp3,.wav,.m4a,.ogg,.flac,.webm,.mpga"
        aria-label={words.file}
        onChange={({ target }) => {
          const chosen = target.files?.[0]
          if (chosen !== undefined) onChoose(chosen)
          // Reset the input. Otherwise, the user could not choose the same file again.
          target.value = ""
        }}
      />
    </label>
  )
}

const empty = { model: "", language: "", prompt: "" }
type Draft = typeof empty

export const Transcription = ({ onExplain }: { readonly onExplain: (usageId: string) => void }) => {
  const [file, setFile] = useState<File>()
  const [draft, setDraft] = useState<Draft>(empty)
  const field = <K extends keyof Draft>(name: K) => ({
    value: draft[name],
    onChange: (value: string) => setDraft({ ...draft, [name]: value })
  })
  const { model, ...rest } = draft
  const fields = { ...toolModel(model), ...filledIn(rest) }
  return (
    <ToolOf<TranscriptionInput, Schemas["TranscriptionAnswer"]>
      runs={transcriptionRuns}
      onExplain={onExplain}
      title={words.title}
      icon={FileAudio}
      emptyTitle={words.emptyTitle}
      emptyText={words.emptyText}
      action={words.action}
      input={file === undefined ? undefined : { file, fields }}
      asked={({ file: { name } }) => name}
      shown={({ text }) => (
        <div className="playground-transcript">
          <p className="playground-text">{text === "" ? <span className="quiet">{words.nothing}</span> : text}</p>
          {text === "" ? null : <Copy text={text} />}
        </div>
      )}
      facts={({ duration: seconds, provider, text }, { file: { size } }) => (
        <>
          {seconds === undefined ? null : <Fact name={words.length}>{duration(seconds * 1000)}</Fact>}
          <Fact name={words.words}>{count(text.split(/\s+/).filter((word) => word !== "").length)}</Fact>
          <Fact name={words.size}>{fileSize(size)}</Fact>
          <Fact name={playgroundTexts.provider}>{provider}</Fact>
        </>
      )}
      fields={
        <>
          <FileField file={file} onChoose={setFile} />
          <div className="playground-pair">
            <ToolModelField tool="transcriptions" {...field("model")} />
            <TextField
              name="language"
              label={words.language}
              placeholder={words.languageAny}
              maxLength={2}
              {...field("language")}
            />
          </div>
          <TextField name="prompt" label={words.prompt} help={words.promptHelp} lines={2} {...field("prompt")} />
        </>
      }
      program={<Program of={transcriptionCode(file?.name ?? "speech.mp3", fields)} />}
    />
  )
}
