/** Every story's commands print what its page says; PORTOLAN_UPDATE_CASES=1 rewrites the pages. */
import { writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { expect, test } from 'vitest'
import { parseStory, playStory, storyPaths } from './story'

const stories = storyPaths().map(parseStory)

test('there are stories, and each begins with the sentence it tells', () => {
  expect(stories.length).toBeGreaterThan(5)
  expect(stories.filter((story) => !/^# .+\.\n/.test(story.head)).map((story) => story.path)).toEqual([])
})

test.each(stories.map((story) => [basename(story.path), story] as const))('%s', async (_, story) => {
  const played = await playStory(story)
  if (process.env.PORTOLAN_UPDATE_CASES === '1') writeFileSync(story.path, played)
  else
    expect(played).toBe(
      story.head +
        story.sections
          .map((section) => `-- ${section.kind === 'run' ? 'run: ' : ''}${section.name} --\n${section.body}`)
          .join(''),
    )
})
