"""The public names, each written down once: `nearlabel.common.lazy` loads them on first use."""

from nearlabel.features.grid_moments import GridMoments as GridMoments
from nearlabel.features.networks.picture_inputs import PictureInput as PictureInput
from nearlabel.features.picture_embedding import PictureEmbedding as PictureEmbedding
from nearlabel.features.picture_embedding import best_picture_features as best_picture_features
from nearlabel.features.picture_files import PictureVectors as PictureVectors
from nearlabel.features.picture_files import find_pictures as find_pictures
from nearlabel.features.picture_files import picture_vectors as picture_vectors
from nearlabel.features.pictures import UnreadablePicture as UnreadablePicture
from nearlabel.features.text_embedding import TextEmbedding as TextEmbedding
from nearlabel.features.texts import TextFiles as TextFiles
from nearlabel.features.texts import text_files as text_files
from nearlabel.features.words import FrequentWords as FrequentWords
